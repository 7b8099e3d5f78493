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

// AssignmentPlan holds the waiting entries of an organisation and the offers to make now.
type Plan struct {
	Line    []Entry          // all waiting entries in the order of service, across queues; without contact and times
	Queues  map[string]Queue // the queues of the entries
	Staffed map[string]int   // number of staffed agents, by queue
	Offers  map[string]bool  // open and answered offers by id; true: ringing
	Matches []Match
	Again   time.Time // when the passage of time changes the plan; zero: never
}

// Assignment is an entry and the agents to ring for it.
type Match struct {
	Entry  Entry
	Agents []string
	Untold []string // agents whose change to free is not published yet; agent.PublishPresenceNow publishes it
}

// Plan computes which entries are to be offered to which agents. Entries are processed in order across all queues. An
// agent is assigned to the first entry that the agent can answer, so priority applies across queues. Agents are
// ordered by how often they were already offered this entry, then by the queue's strategy. An agent is skipped until
// the queue's retry delay has passed. Entries of another living node take part, so that their agents are left to that
// node, but they are not in the result.
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

// planBuilder collects the data of a plan.
type deal struct {
	Plan
	s       *Service
	q       db.Querier
	org     string
	now     time.Time
	members map[string][]Member // by queue
	taken   map[string]bool     // agents ringing, talking or assigned by this plan
	tried   map[[2]string]try   // by entry id and agent id
}

// offerHistory holds how often an agent was offered an entry without answering, and when last.
type try struct {
	times int
	last  time.Time
}

// readEntries reads the columns that matter for the order of waiting entries; of callbacks, all columns.
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

// idFilter returns the ids for a statement, or nil, which reads all rows, if there are more than 200.
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

// planAgain requests a new plan at a time.
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

// readHistory reads the unanswered offers of waiting entries.
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

// assign chooses the agents to ring for an entry.
func (d *deal) match(e Entry) {
	k := d.Queues[e.QueueID]
	joins := e.Status == Offering && k.Strategy == "ring_all" // also ring agents that become free
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

// candidates returns the agents that can be rung for an entry, in order. If the entry is being offered already, it
// returns only agents without an offer of it yet.
func (d *deal) candidates(k Queue, e Entry, joins bool) (found []Member) {
	pause := max(time.Duration(k.RetryDelay)*time.Second, leastRetry)
	for _, m := range d.members[k.ID] {
		t := d.tried[[2]string{e.ID, m.UserID}]
		switch {
		case d.taken[m.UserID] || !m.takes() || !m.able(k.RequiredSkills, e.Skills):
		case joins && t.times > 0:
		case t.times > 0 && t.last.Add(pause).After(d.now):
			d.again(t.last.Add(pause))
		case d.s.LettingGo != nil && d.s.LettingGo(m.UserID): // the next INVITE must not overtake the BYE or CANCEL of the last call
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

// releaseRecheck is the delay until an agent with a pending release is checked again.
const partingLook = 10 * time.Millisecond

// minRetryDelay is the least time until an agent is rung again for the same entry.
const leastRetry = time.Second

// leaseExpired reports whether the node of an entry has stopped renewing the lease.
func (e Entry) lost(now time.Time) bool { return !e.LeaseUntil.IsZero() && e.LeaseUntil.Before(now) }

// isStaffing reports whether a member can take callers, now or after the current call.
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

// OrgsWithCallbacks returns the ids of organisations with pending or dialling callbacks. No node owns those.
func (s *Service) Organisations(ctx context.Context) (found []string, err error) {
	// tenant: reads the entries of all organisations
	const text = `SELECT DISTINCT org_id FROM queue_entries WHERE ` + isOpen + ` AND status IN ('callback_pending', 'callback_dialing')`
	err = each(ctx, s.DB.Read(ctx), "find organisations", text, nil, func(scan func(...any) error) error {
		var id string
		err := scan(&id)
		found = append(found, id)
		return err
	})
	return found, err
}

// A node renews the leases of its entries every LeaseRenewInterval. After entryLease without renewal it counts as
// dead.
const (
	KeepEvery = 5 * time.Second
	leaseOf   = 20 * time.Second
)

// RenewLease extends the leases of this node's calls of an organisation.
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

// Title returns the queue's name without line breaks, for the display of the agents' phones.
func (k Queue) Title() string { return strings.Join(strings.Fields(k.Name), " ") }
