package acd

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"soniq/internal/contactcenter/queue"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/telephony/call"
)

// dispatcher offers callers waiting on this node to agents. It has one orgDispatcher per organisation with
// callers. An orgDispatcher plans again after each change of its callers, agents or queues.
type dispatcher struct {
	s *Service

	mu      sync.Mutex // guards orgs, ctx and closed
	orgs    map[string]*orgDispatcher
	ctx     context.Context // nil: not running yet
	running sync.WaitGroup
	closed  bool
}

// orgDispatcher assigns the callers of one organisation to agents.
type orgDispatcher struct {
	dispatcher      *dispatcher
	org             string
	wake            chan struct{}
	leasesRenewedAt time.Time // when the leases were last renewed; used by its goroutine only

	mu            sync.Mutex // guards waiters and callbackDials
	waiters       map[string]*queueWaiter
	callbackDials map[string]string // offer ids of callbacks that are being dialled, by call id
}

// Distribute offers callers to agents until the context ends.
func (s *Service) Distribute(ctx context.Context, b *bus.Bus) {
	d := &s.dispatcher
	wakes := b.Subscribe(queue.Wake, 1024)
	defer wakes.Close()
	d.begin(ctx)
	defer d.end()
	tick := clock.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		d.startForCallbacks()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case org := <-wakes.C:
			if id, ok := org.(string); ok {
				s.WakeDispatcher(id)
			}
			for len(wakes.C) > 0 {
				if id, ok := (<-wakes.C).(string); ok {
					s.WakeDispatcher(id)
				}
			}
			continue
		}
	}
}

// pollInterval is the longest time between two plans of an orgDispatcher, in case a wake-up was lost.
const pollInterval = time.Second

// WakeDispatcher starts a new plan for an organisation after a change of its queues or agents. It returns at once.
func (s *Service) WakeDispatcher(org string) {
	d := &s.dispatcher
	d.mu.Lock()
	k := d.orgs[org]
	d.mu.Unlock()
	if k != nil {
		k.wakeUp()
	}
}

func (k *orgDispatcher) wakeUp() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func (d *dispatcher) begin(ctx context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ctx = ctx
	for _, k := range d.orgs {
		d.start(k)
	}
}

func (d *dispatcher) end() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.running.Wait()
}

func (d *dispatcher) start(k *orgDispatcher) {
	d.running.Add(1)
	go func() {
		defer d.running.Done()
		k.run(d.ctx)
	}()
}

// dispatcherFor returns the orgDispatcher of an organisation, and creates it if there is none. The caller holds d.mu.
func (d *dispatcher) dispatcherFor(org string) *orgDispatcher {
	k := d.orgs[org]
	if k == nil {
		k = &orgDispatcher{dispatcher: d, org: org, wake: make(chan struct{}, 1), waiters: map[string]*queueWaiter{},
			callbackDials: map[string]string{}}
		d.orgs[org] = k
		if d.ctx != nil && !d.closed {
			d.start(k)
		}
	}
	return k
}

// startForCallbacks starts an orgDispatcher for each organisation with pending callbacks, because no script waits for
// those.
func (d *dispatcher) startForCallbacks() {
	orgs, err := d.s.cfg.Queues.OrgsWithCallbacks(d.ctx)
	if err != nil {
		if d.ctx.Err() == nil {
			d.s.cfg.Log.Warn("pending callbacks not read", "err", err)
		}
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, org := range orgs {
		d.dispatcherFor(org)
	}
}

// add registers a caller to be offered to agents.
func (d *dispatcher) add(org string, w *queueWaiter) {
	d.mu.Lock()
	k := d.dispatcherFor(org)
	k.mu.Lock()
	k.waiters[w.callID] = w
	k.mu.Unlock()
	d.mu.Unlock()
	k.wakeUp()
}

func (d *dispatcher) remove(org string, w *queueWaiter) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if k := d.orgs[org]; k != nil {
		k.mu.Lock()
		delete(k.waiters, w.callID)
		k.mu.Unlock()
	}
}

// closeIfIdle removes an orgDispatcher without callers. It returns false if a caller was added meanwhile.
func (d *dispatcher) closeIfIdle(k *orgDispatcher) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.waiters) > 0 || len(k.callbackDials) > 0 {
		return false
	}
	delete(d.orgs, k.org)
	return true
}

// run assigns callers to agents until there are none.
func (k *orgDispatcher) run(ctx context.Context) {
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
		next := pollInterval
		p, err := k.dispatch(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			k.dispatcher.s.cfg.Log.Error("callers not offered", "org", k.org, "err", err)
		case len(p.Entries) == 0 && k.dispatcher.closeIfIdle(k):
			return
		case !p.NextAt.IsZero():
			next = min(max(p.NextAt.Sub(k.dispatcher.s.cfg.Clock.Now()), time.Millisecond), pollInterval)
		}
		sleepContext(ctx, min(time.Since(began), maxPause))
		again.Reset(next)
	}
}

// maxPause is the longest pause after a plan, so that other users of the database are not delayed.
const maxPause = 5 * time.Millisecond

func sleepContext(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// dispatch makes a plan, posts updates to the waiting callers, and makes the offers of the plan.
func (k *orgDispatcher) dispatch(ctx context.Context) (*queue.AssignmentPlan, error) {
	p, err := k.dispatcher.s.cfg.Queues.Plan(ctx, k.org)
	if err != nil {
		return nil, err
	}
	waits, dials := k.snapshot()
	k.notifyWaiters(p, waits)
	k.endClosedDials(ctx, p, dials)
	if err := k.renewLeases(ctx, waits); err != nil {
		return p, err
	}
	var all sync.WaitGroup
	for part := range slices.Chunk(p.Assignments, offersAtOnce) {
		for _, m := range part {
			all.Go(func() { k.offer(ctx, p, m, waits) })
		}
		all.Wait()
	}
	return p, nil
}

// offersAtOnce is how many offers are made concurrently, so that they share a commit.
const offersAtOnce = 16

func (k *orgDispatcher) snapshot() (map[string]*queueWaiter, map[string]string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.waiters), maps.Clone(k.callbackDials)
}

// notifyWaiters posts the changes to each waiting caller.
func (k *orgDispatcher) notifyWaiters(p *queue.AssignmentPlan, waits map[string]*queueWaiter) {
	in := map[string]queue.Entry{}
	for _, e := range p.Entries {
		in[e.CallID] = e
	}
	for id, w := range waits {
		e, standing := in[id]
		known := w.currentEntry()
		w.post(func(n *queueUpdate) {
			n.openOffers = p.Offers
			if n.recheck = !standing || e.ID != known; !n.recheck {
				n.queue, n.unstaffed = p.Queues[e.QueueID], p.Staffed[e.QueueID] == 0
			}
		})
	}
}

// renewLeases extends the leases of this node's callers, at most once per queue.LeaseRenewInterval.
func (k *orgDispatcher) renewLeases(ctx context.Context, waits map[string]*queueWaiter) error {
	if now := k.dispatcher.s.cfg.Clock.Now(); now.Sub(k.leasesRenewedAt) >= queue.LeaseRenewInterval && len(waits) > 0 {
		k.leasesRenewedAt = now
		return k.dispatcher.s.cfg.Queues.RenewLease(ctx, k.org, slices.Collect(maps.Keys(waits)))
	}
	return nil
}

// offer rings agents for a caller. Another node being quicker, or the caller having left, is not an error: the next
// plan corrects it.
func (k *orgDispatcher) offer(ctx context.Context, p *queue.AssignmentPlan, m queue.Assignment, waits map[string]*queueWaiter) {
	s := k.dispatcher.s
	q := p.Queues[m.Entry.QueueID]
	w := waits[m.Entry.CallID]
	if m.Entry.Status != queue.CallbackPending && w == nil {
		return
	}
	var err error
	if len(m.Unpublished) > 0 {
		err = s.cfg.Agents.PublishPresenceNow(ctx, k.org, m.Unpublished)
	}
	switch {
	case err != nil:
	case m.Entry.Status == queue.CallbackPending:
		err = k.dial(ctx, q, m)
	default:
		var made []queue.Offer
		if made, err = s.cfg.Queues.Offer(ctx, m.Entry, m.Agents, seconds(q.RingTimeout)); err == nil {
			w.post(func(n *queueUpdate) { n.newOffers = append(n.newOffers, made...) })
		}
	}
	if err != nil && !errors.Is(err, queue.ErrGone) && !db.IsConflict(err) && ctx.Err() == nil {
		s.cfg.Log.Error("caller not offered", "org", k.org, "entry", m.Entry.ID, "err", err)
	}
}

// customerRingTimeout is how long the phone of the customer rings in a callback.
const customerRingTimeout = 40 * time.Second

// dial places a callback: the agent's phones ring first, then the customer's.
func (k *orgDispatcher) dial(ctx context.Context, q queue.Queue, m queue.Assignment) error {
	s, callID := k.dispatcher.s, db.NewID("call")
	if s.cfg.Calls.Switch == nil {
		return nil
	}
	p, err := s.cfg.Callbacks.QueueCallbackPlacement(ctx, k.org, m.Entry.CallID, callID, m.Agents[0])
	if err != nil {
		return err
	}
	p.RingTimeout, p.DialTimeout, p.DisplayName = seconds(q.RingTimeout), customerRingTimeout, q.Title()
	if q.RecordingMode != "inherit" {
		p.Record = q.RecordingMode
	}
	o, err := s.cfg.Queues.DialCallback(ctx, m.Entry, m.Agents[0], p.RingTimeout+p.DialTimeout, callID)
	if err != nil {
		return err
	}
	k.setDial(callID, o.ID)
	if err = s.cfg.Calls.Switch.Place(ctx, p); err != nil {
		k.setDial(callID, "")
		s.cfg.Log.Info("callback not placed", "org", k.org, "call", callID, "err", err)
		return s.cfg.DB.TxRelaxedContext(ctx, func(ctx context.Context, tx db.Querier) error {
			return s.cfg.Queues.CallbackEnded(ctx, tx, k.org, callID, "failed", false)
		})
	}
	return s.cfg.DB.TxRelaxed(ctx, func(tx db.Querier) error { return s.cfg.Calls.EnterQueue(ctx, tx, k.org, callID, q.ID) })
}

func (k *orgDispatcher) setDial(callID, offer string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if offer == "" {
		delete(k.callbackDials, callID)
		return
	}
	k.callbackDials[callID] = offer
}

// endClosedDials hangs up callback calls whose offers are over: the agent signed out, or the callback was cancelled.
func (k *orgDispatcher) endClosedDials(ctx context.Context, p *queue.AssignmentPlan, dials map[string]string) {
	for callID, offer := range dials {
		if _, open := p.Offers[offer]; open {
			continue
		}
		k.setDial(callID, "")
		_, _ = k.dispatcher.s.cfg.Calls.Switch.Do(ctx, k.org, callID,
			call.End{Reason: "the agent or the caller is not there any more"}) // an error means that the call ended already
	}
}

// CallbackConnected records, in the transaction that connects the call, that the agent and the customer of a callback
// are connected. It does nothing for other calls.
func (s *Service) CallbackConnected(ctx context.Context, tx db.Querier, org, callID string) error {
	d := &s.dispatcher
	d.mu.Lock()
	k := d.orgs[org]
	d.mu.Unlock()
	if k == nil {
		return nil
	}
	k.mu.Lock()
	_, dialled := k.callbackDials[callID]
	k.mu.Unlock()
	if !dialled {
		return nil
	}
	db.OnCommit(tx, func() { k.setDial(callID, "") })
	err := s.cfg.Queues.CallbackAnswered(ctx, tx, org, callID)
	if errors.Is(err, queue.ErrGone) {
		return nil
	}
	return err
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }
