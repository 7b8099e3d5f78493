package routing

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"soniq/internal/contactcenter/queue"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/db"
	"soniq/internal/telephony/call"
)

// dispatcher offers callers waiting on this node to agents. It has one orgDispatcher per organisation with
// callers. An orgDispatcher plans again after each change of its callers, agents or queues.
type distributor struct {
	s *Service

	mu     sync.Mutex // guards orgs, ctx and closed
	desks  map[string]*desk
	ctx    context.Context // nil: not running yet
	at     sync.WaitGroup
	closed bool
}

// orgDispatcher assigns the callers of one organisation to agents.
type desk struct {
	d    *distributor
	org  string
	wake chan struct{}
	kept time.Time // when the leases were last renewed; used by its goroutine only

	mu    sync.Mutex // guards waiters and callbackDials
	waits map[string]*waiter
	dials map[string]string // offer ids of callbacks that are being dialled, by call id
}

// Distribute offers callers to agents until the context ends.
func (s *Service) Distribute(ctx context.Context, b *bus.Bus) {
	d := &s.distributor
	wakes := b.Subscribe(queue.Wake, 1024)
	defer wakes.Close()
	d.begin(ctx)
	defer d.end()
	tick := time.NewTicker(lostWakes)
	defer tick.Stop()
	for {
		d.awaken()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case org := <-wakes.C:
			if id, ok := org.(string); ok {
				s.Touch(id)
			}
			for len(wakes.C) > 0 {
				if id, ok := (<-wakes.C).(string); ok {
					s.Touch(id)
				}
			}
			continue
		}
	}
}

// pollInterval is the longest time between two plans of an orgDispatcher, in case a wake-up was lost.
const lostWakes = time.Second

// WakeDispatcher starts a new plan for an organisation after a change of its queues or agents. It returns at once.
func (s *Service) Touch(org string) {
	d := &s.distributor
	d.mu.Lock()
	k := d.desks[org]
	d.mu.Unlock()
	if k != nil {
		k.touch()
	}
}

func (k *desk) touch() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func (d *distributor) begin(ctx context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ctx = ctx
	for _, k := range d.desks {
		d.start(k)
	}
}

func (d *distributor) end() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.at.Wait()
}

func (d *distributor) start(k *desk) {
	d.at.Add(1)
	go func() {
		defer d.at.Done()
		k.run(d.ctx)
	}()
}

// dispatcherFor returns the orgDispatcher of an organisation, and creates it if there is none. The caller holds d.mu.
func (d *distributor) desk(org string) *desk {
	k := d.desks[org]
	if k == nil {
		k = &desk{d: d, org: org, wake: make(chan struct{}, 1), waits: map[string]*waiter{}, dials: map[string]string{}}
		d.desks[org] = k
		if d.ctx != nil && !d.closed {
			d.start(k)
		}
	}
	return k
}

// startForCallbacks starts an orgDispatcher for each organisation with pending callbacks, because no script waits for
// those.
func (d *distributor) awaken() {
	orgs, err := d.s.Queues.Organisations(d.ctx)
	if err != nil {
		if d.ctx.Err() == nil {
			d.s.Log.Warn("pending callbacks not read", "err", err)
		}
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, org := range orgs {
		d.desk(org)
	}
}

// add registers a caller to be offered to agents.
func (d *distributor) add(org string, w *waiter) {
	d.mu.Lock()
	k := d.desk(org)
	k.mu.Lock()
	k.waits[w.callID] = w
	k.mu.Unlock()
	d.mu.Unlock()
	k.touch()
}

func (d *distributor) remove(org string, w *waiter) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if k := d.desks[org]; k != nil {
		k.mu.Lock()
		delete(k.waits, w.callID)
		k.mu.Unlock()
	}
}

// closeIfIdle removes an orgDispatcher without callers. It returns false if a caller was added meanwhile.
func (d *distributor) shut(k *desk) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.waits) > 0 || len(k.dials) > 0 {
		return false
	}
	delete(d.desks, k.org)
	return true
}

// run assigns callers to agents until there are none.
func (k *desk) run(ctx context.Context) {
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.wake:
		case <-again.C:
		}
		began := time.Now()
		next := lostWakes
		p, err := k.look(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			k.d.s.Log.Error("callers not offered", "org", k.org, "err", err)
		case len(p.Line) == 0 && k.d.shut(k):
			return
		case !p.Again.IsZero():
			next = min(max(p.Again.Sub(k.d.s.Now()), time.Millisecond), lostWakes)
		}
		rest(ctx, min(time.Since(began), longestRest))
		again.Reset(next)
	}
}

// maxPause is the longest pause after a plan, so that other users of the database are not delayed.
const longestRest = 5 * time.Millisecond

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// dispatch makes a plan, posts updates to the waiting callers, and makes the offers of the plan.
func (k *desk) look(ctx context.Context) (*queue.Plan, error) {
	p, err := k.d.s.Queues.Plan(ctx, k.org)
	if err != nil {
		return nil, err
	}
	waits, dials := k.present()
	k.tell(p, waits)
	k.giveUp(ctx, p, dials)
	if err := k.keep(ctx, waits); err != nil {
		return p, err
	}
	var all sync.WaitGroup
	for part := range slices.Chunk(p.Matches, atOnce) {
		for _, m := range part {
			all.Go(func() { k.offer(ctx, p, m, waits) })
		}
		all.Wait()
	}
	return p, nil
}

// offersAtOnce is how many offers are made concurrently, so that they share a commit.
const atOnce = 16

func (k *desk) present() (map[string]*waiter, map[string]string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.waits), maps.Clone(k.dials)
}

// notifyWaiters posts the changes to each waiting caller.
func (k *desk) tell(p *queue.Plan, waits map[string]*waiter) {
	in := map[string]queue.Entry{}
	for _, e := range p.Line {
		in[e.CallID] = e
	}
	for id, w := range waits {
		e, standing := in[id]
		known := w.entryNow()
		w.post(func(n *news) {
			n.offers = p.Offers
			if n.look = !standing || e.ID != known; !n.look {
				n.queue, n.empty = p.Queues[e.QueueID], p.Staffed[e.QueueID] == 0
			}
		})
	}
}

// renewLeases extends the leases of this node's callers, at most once per queue.LeaseRenewInterval.
func (k *desk) keep(ctx context.Context, waits map[string]*waiter) error {
	if now := k.d.s.Now(); now.Sub(k.kept) >= queue.KeepEvery && len(waits) > 0 {
		k.kept = now
		return k.d.s.Queues.Keep(ctx, k.org, slices.Collect(maps.Keys(waits)))
	}
	return nil
}

// offer rings agents for a caller. Another node being quicker, or the caller having left, is not an error: the next
// plan corrects it.
func (k *desk) offer(ctx context.Context, p *queue.Plan, m queue.Match, waits map[string]*waiter) {
	s := k.d.s
	q := p.Queues[m.Entry.QueueID]
	w := waits[m.Entry.CallID]
	if m.Entry.Status != queue.CallbackPending && w == nil {
		return
	}
	var err error
	if len(m.Untold) > 0 {
		err = s.Agents.SettleNow(ctx, k.org, m.Untold)
	}
	switch {
	case err != nil:
	case m.Entry.Status == queue.CallbackPending:
		err = k.dial(ctx, q, m)
	default:
		var made []queue.Offer
		if made, err = s.Queues.Offer(ctx, m.Entry, m.Agents, seconds(q.RingTimeout)); err == nil {
			w.post(func(n *news) { n.ring = append(n.ring, made...) })
		}
	}
	if err != nil && !errors.Is(err, queue.ErrGone) && !db.IsConflict(err) && ctx.Err() == nil {
		s.Log.Error("caller not offered", "org", k.org, "entry", m.Entry.ID, "err", err)
	}
}

// customerRingTimeout is how long the phone of the customer rings in a callback.
const customerRings = 40 * time.Second

// dial places a callback: the agent's phones ring first, then the customer's.
func (k *desk) dial(ctx context.Context, q queue.Queue, m queue.Match) error {
	s, callID := k.d.s, db.NewID("call")
	if s.Calls.Switch == nil {
		return nil
	}
	p, err := s.Calls.QueueDial(ctx, k.org, m.Entry.CallID, callID, m.Agents[0])
	if err != nil {
		return err
	}
	p.RingTimeout, p.DialTimeout, p.Show = seconds(q.RingTimeout), customerRings, q.Title()
	if q.RecordingMode != "inherit" {
		p.Record = q.RecordingMode
	}
	o, err := s.Queues.Dial(ctx, m.Entry, m.Agents[0], p.RingTimeout+p.DialTimeout, callID)
	if err != nil {
		return err
	}
	k.setDial(callID, o.ID)
	if err = s.Calls.Switch.Place(ctx, p); err != nil {
		k.setDial(callID, "")
		s.Log.Info("callback not placed", "org", k.org, "call", callID, "err", err)
		return s.DB.SwiftContext(ctx, func(ctx context.Context, tx db.Querier) error {
			return s.Queues.CallbackEnded(ctx, tx, k.org, callID, "failed", false)
		})
	}
	return s.DB.Swift(ctx, func(tx db.Querier) error { return s.Calls.EnterQueue(ctx, tx, k.org, callID, q.ID) })
}

func (k *desk) setDial(callID, offer string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if offer == "" {
		delete(k.dials, callID)
		return
	}
	k.dials[callID] = offer
}

// endClosedDials hangs up callback calls whose offers are over: the agent signed out, or the callback was cancelled.
func (k *desk) giveUp(ctx context.Context, p *queue.Plan, dials map[string]string) {
	for callID, offer := range dials {
		if _, open := p.Offers[offer]; open {
			continue
		}
		k.setDial(callID, "")
		_, _ = k.d.s.Calls.Switch.Do(ctx, k.org, callID, call.End{Reason: "the agent or the caller is not there any more"}) // an error means that the call ended already
	}
}

// CallbackConnected records, in the transaction that connects the call, that the agent and the customer of a callback
// are connected. It does nothing for other calls.
func (s *Service) Connected(ctx context.Context, tx db.Querier, org, callID string) error {
	d := &s.distributor
	d.mu.Lock()
	k := d.desks[org]
	d.mu.Unlock()
	if k == nil {
		return nil
	}
	k.mu.Lock()
	_, dialled := k.dials[callID]
	k.mu.Unlock()
	if !dialled {
		return nil
	}
	db.OnCommit(tx, func() { k.setDial(callID, "") })
	err := s.Queues.CallbackAnswered(ctx, tx, org, callID)
	if errors.Is(err, queue.ErrGone) {
		return nil
	}
	return err
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }
