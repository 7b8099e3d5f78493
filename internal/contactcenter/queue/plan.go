package queue

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"soniq/internal/contactcenter/agent"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
)

// A Plan is how the callers of an organisation stand, and what is to be done about them now.
type Plan struct {
	Line    []Entry          // everybody who has a place, in the order in which they are served, whatever their queue; without contact and times
	Queues  map[string]Queue // those they are in
	Staffed map[string]int   // by queue: who is there for its callers
	Offers  map[string]bool  // who is rung, by the ids of offers
	Matches []Match
	Again   time.Time // when time alone makes another plan of it; zero: never
}

// A Match is a caller, and the agents to be rung for them.
type Match struct {
	Entry  Entry
	Agents []string
	Untold []string // those of them of whom it was not told yet that they are free: agent.SettleNow tells it
}

// Plan works out who is to be offered to whom. Callers are looked at in their order across all queues, and an agent is given to the
// first of them whom they can answer: who has priority has it in every queue. Of a caller who was rung for in vain those agents are
// asked first who were asked least often, then as the strategy says, and nobody again before the queue's retry delay is over. Callers
// whom another living node carries are counted, so that their agents are left to it, and are none of the matches.
func (s *Service) Plan(ctx context.Context, org string) (*Plan, error) {
	d := &deal{s: s, q: s.DB.Read(ctx), org: org, now: s.Now(), taken: map[string]bool{}, tried: map[[2]string]try{},
		Plan: Plan{Queues: map[string]Queue{}, Staffed: map[string]int{}, Offers: map[string]bool{}}}
	for _, read := range []func(context.Context) error{d.readOffers, d.readLine, d.readQueues, d.readMembers, d.readTries} {
		if err := read(ctx); err != nil {
			return nil, fmt.Errorf("plan callers: %w", err)
		}
	}
	for _, e := range d.Line {
		d.match(e)
	}
	return &d.Plan, nil
}

// A deal is a plan in the making.
type deal struct {
	Plan
	s       *Service
	q       db.Querier
	org     string
	now     time.Time
	members map[string][]Member // by queue
	taken   map[string]bool     // agents who are rung, spoken with, or given away by this plan
	tried   map[[2]string]try   // by caller and agent
}

// A try is how often an agent was rung for a caller in vain, and when last.
type try struct {
	times int
	last  time.Time
}

// readLine reads of everybody in line what matters for their turn; of those who are to be called back, all.
func (d *deal) readLine(ctx context.Context) error {
	const text = `SELECT id, queue_id, call_id, status, priority, skills, offers, callback, retry_at, node, lease_until
		FROM queue_entries WHERE org_id = $1 AND ` + inLine + ` ORDER BY priority DESC, place, id`
	return each(ctx, d.q, "read line", text, []any{d.org}, func(scan func(...any) error) error {
		e := Entry{OrgID: d.org}
		var skills string
		var callback db.JSON[*event.QueueCallback]
		err := scan(&e.ID, &e.QueueID, &e.CallID, &e.Status, &e.Priority, &skills, &e.Offers, &callback, &e.RetryAt, &e.Node, &e.LeaseUntil)
		if err == nil && skills != "{}" {
			err = json.Unmarshal([]byte(skills), &e.Skills)
		}
		e.Callback = callback.V
		d.Line = append(d.Line, e)
		return err
	})
}

func (d *deal) readQueues(ctx context.Context) error {
	var ids []string
	for _, e := range d.Line {
		if _, known := d.Queues[e.QueueID]; !known {
			d.Queues[e.QueueID] = Queue{}
			ids = append(ids, e.QueueID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	found, err := all(ctx, d.q, db.Where(selection, d.org).In("k.id", few(ids)), "", maxQueues)
	for _, k := range found {
		if _, wanted := d.Queues[k.ID]; wanted {
			d.Queues[k.ID] = k
		}
	}
	return err
}

// few names ids in a statement; of many it names none, and all are read.
func few(ids []string) []string {
	if len(ids) > 200 {
		return nil
	}
	return ids
}

func (d *deal) readMembers(ctx context.Context) error {
	var ids, fewest []string
	for id, k := range d.Queues {
		ids = append(ids, id)
		if k.Strategy == "fewest_calls" {
			fewest = append(fewest, id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	slices.Sort(ids)
	found, err := members(ctx, d.q, d.org, few(ids))
	if err != nil {
		return err
	}
	if len(fewest) > 0 {
		err = d.s.dress(ctx, d.q, d.org, found)
	} else {
		err = d.s.present(ctx, d.q, d.org, found)
	}
	d.members = map[string][]Member{}
	for _, m := range found {
		d.members[m.QueueID] = append(d.members[m.QueueID], m)
		if m.there() {
			d.Staffed[m.QueueID]++
		}
		if m.SignedIn && m.state != nil {
			d.again(m.state.Due())
		}
	}
	return err
}

// again has the plan made anew at a time.
func (d *deal) again(at time.Time) {
	if at.After(d.now) && (d.Again.IsZero() || at.Before(d.Again)) {
		d.Again = at
	}
}

func (d *deal) readOffers(ctx context.Context) error {
	const text = `SELECT id, agent_id, status FROM queue_offers WHERE org_id = $1 AND status IN ('offering', 'connected')`
	return each(ctx, d.q, "find offers", text, []any{d.org}, func(scan func(...any) error) error {
		var id, agent, status string
		err := scan(&id, &agent, &status)
		d.taken[agent] = true
		d.Offers[id] = status == OfferOpen
		return err
	})
}

// readTries reads who was rung in vain for callers who wait.
func (d *deal) readTries(ctx context.Context) error {
	if !slices.ContainsFunc(d.Line, func(e Entry) bool { return e.Offers > 0 }) {
		return nil
	}
	const text = `SELECT o.entry_id, o.agent_id, COUNT(*), MAX(o.ended_at) FROM queue_entries e
		JOIN queue_offers o ON o.org_id = e.org_id AND o.entry_id = e.id
		WHERE e.org_id = $1 AND e.status IN ('waiting', 'offering', 'callback_pending', 'callback_dialing') AND e.offers > 0 AND o.ended_at IS NOT NULL
		GROUP BY o.entry_id, o.agent_id`
	return each(ctx, d.q, "find past offers", text, []any{d.org}, func(scan func(...any) error) error {
		var entry, agent string
		var times int
		var last db.Time
		err := scan(&entry, &agent, &times, &last)
		d.tried[[2]string{entry, agent}] = try{times, last.Time}
		return err
	})
}

// match finds who is to be rung for a caller.
func (d *deal) match(e Entry) {
	k := d.Queues[e.QueueID]
	joins := e.Status == Offering && k.Strategy == "ring_all" // who becomes free rings along
	if e.Status != Waiting && e.Status != CallbackPending && !joins || k.ID == "" {
		return
	}
	ours := e.Status == CallbackPending || e.Node == d.s.Node
	if !ours && e.lost(d.now) {
		return
	}
	if e.RetryAt.After(d.now) {
		d.again(e.RetryAt.Time)
		return
	}
	m := Match{Entry: e}
	for _, x := range d.candidates(k, e, joins) {
		m.Agents = append(m.Agents, x.UserID)
		if x.state.Stale() {
			m.Untold = append(m.Untold, x.UserID)
		}
		d.taken[x.UserID] = true
		if k.Strategy != "ring_all" || e.Status == CallbackPending {
			break
		}
	}
	if len(m.Agents) > 0 && ours {
		d.Matches = append(d.Matches, m)
	}
}

// candidates are who can be rung for a caller, in order; for one who is rung for already, those who were not rung yet.
func (d *deal) candidates(k Queue, e Entry, joins bool) (found []Member) {
	pause := max(time.Duration(k.RetryDelay)*time.Second, leastRetry)
	for _, m := range d.members[k.ID] {
		t := d.tried[[2]string{e.ID, m.UserID}]
		switch {
		case d.taken[m.UserID] || !m.takes() || !m.able(k.RequiredSkills, e.Skills):
		case joins && t.times > 0:
		case t.times > 0 && t.last.Add(pause).After(d.now):
			d.again(t.last.Add(pause))
		case d.s.LettingGo != nil && d.s.LettingGo(m.UserID): // their next call must not overtake the end of the last one
			d.again(d.now.Add(partingLook))
		default:
			found = append(found, m)
		}
	}
	k.order(found, e)
	slices.SortStableFunc(found, func(a, b Member) int {
		return d.tried[[2]string{e.ID, a.UserID}].times - d.tried[[2]string{e.ID, b.UserID}].times
	})
	return found
}

// partingLook is how soon an agent is looked at again whose telephone is being told that a call is over.
const partingLook = 10 * time.Millisecond

// leastRetry is the least time until an agent is rung again for the same caller.
const leastRetry = time.Second

// lost reports whether the node that carried a caller has not said for long that it lives.
func (e Entry) lost(now time.Time) bool { return !e.LeaseUntil.IsZero() && e.LeaseUntil.Before(now) }

// there reports whether a member is there for callers, now or after the call they are on.
func (m Member) there() bool {
	if !m.SignedIn {
		return false
	}
	switch m.Presence.Status {
	case agent.Ringing, agent.Busy:
		return true
	case agent.Available, agent.WrapUp:
		return !m.Paused
	}
	return false
}

// Organisations lists those in whose queues anybody has a place who is not this node's alone: callers to be called back.
func (s *Service) Organisations(ctx context.Context) (found []string, err error) {
	// tenant: the callers of all organisations are served
	const text = `SELECT DISTINCT org_id FROM queue_entries WHERE ` + isOpen + ` AND status IN ('callback_pending', 'callback_dialing')`
	err = each(ctx, s.DB.Read(ctx), "find organisations", text, nil, func(scan func(...any) error) error {
		var id string
		err := scan(&id)
		found = append(found, id)
		return err
	})
	return found, err
}

// A node says every KeepEvery that it carries its callers; one that has not for leaseOf is taken for dead.
const (
	KeepEvery = 5 * time.Second
	leaseOf   = 20 * time.Second
)

// Keep says that this node still carries these callers of an organisation.
func (s *Service) Keep(ctx context.Context, org string, calls []string) error {
	return s.DB.Swift(ctx, func(tx db.Querier) error {
		for part := range slices.Chunk(calls, 200) {
			f := db.Where(`UPDATE queue_entries SET lease_until = $2 WHERE org_id = $1 AND `+isOpen, org, db.At(s.Now().Add(leaseOf)))
			text, args := f.In("call_id", part).SQL()
			if _, err := tx.Exec(ctx, text, args...); err != nil {
				return fmt.Errorf("keep callers: %w", err)
			}
		}
		return nil
	})
}

// Title is how the agents' phones show whom a call is for: the queue's name, without line breaks.
func (k Queue) Title() string { return strings.Join(strings.Fields(k.Name), " ") }
