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
type AssignmentPlan struct {
	Entries     []Entry          // all waiting entries in the order of service, across queues; without contact and times
	Queues      map[string]Queue // the queues of the entries
	Staffed     map[string]int   // number of staffed agents, by queue
	Offers      map[string]bool  // open and answered offers by id; true: ringing
	Assignments []Assignment
	NextAt      time.Time // when the passage of time changes the plan; zero: never
}

// Assignment is an entry and the agents to ring for it.
type Assignment struct {
	Entry       Entry
	Agents      []string
	Unpublished []string // agents whose change to free is not published yet; agent.PublishPresenceNow publishes it
}

// Plan computes which entries are to be offered to which agents. Entries are processed in order across all queues. An
// agent is assigned to the first entry that the agent can answer, so priority applies across queues. Agents are
// ordered by how often they were already offered this entry, then by the queue's strategy. An agent is skipped until
// the queue's retry delay has passed. Entries of another living node take part, so that their agents are left to that
// node, but they are not in the result.
func (s *Service) Plan(ctx context.Context, org string) (*AssignmentPlan, error) {
	d := &planBuilder{s: s, q: s.cfg.DB.Read(ctx), org: org, now: s.cfg.Clock.Now(), unavailable: map[string]bool{},
		history:        map[[2]string]offerHistory{},
		AssignmentPlan: AssignmentPlan{Queues: map[string]Queue{}, Staffed: map[string]int{}, Offers: map[string]bool{}}}
	for _, read := range []func(context.Context) error{d.readOffers, d.readEntries, d.readQueues, d.readMembers, d.readHistory} {
		if err := read(ctx); err != nil {
			return nil, fmt.Errorf("plan callers: %w", err)
		}
	}
	for _, e := range d.Entries {
		d.assign(e)
	}
	return &d.AssignmentPlan, nil
}

// planBuilder collects the data of a plan.
type planBuilder struct {
	AssignmentPlan
	s           *Service
	q           db.Querier
	org         string
	now         time.Time
	members     map[string][]Member        // by queue
	unavailable map[string]bool            // agents ringing, talking or assigned by this plan
	history     map[[2]string]offerHistory // by entry id and agent id
}

// offerHistory holds how often an agent was offered an entry without answering, and when last.
type offerHistory struct {
	count int
	last  time.Time
}

// readEntries reads the columns that matter for the order of waiting entries; of callbacks, all columns.
func (d *planBuilder) readEntries(ctx context.Context) error {
	const text = `SELECT id, queue_id, call_id, status, priority, skills, offers, callback, retry_at, node, lease_until
		FROM queue_entries WHERE org_id = $1 AND ` + waitingCondition + ` ORDER BY priority DESC, place, id`
	return db.ForEach(ctx, d.q, "read line", text, []any{d.org}, func(scan func(...any) error) error {
		e := Entry{OrgID: d.org}
		var skills string
		var callback db.JSON[*event.QueueCallback]
		err := scan(&e.ID, &e.QueueID, &e.CallID, &e.Status, &e.Priority, &skills, &e.Offers, &callback, &e.RetryAt, &e.Node, &e.LeaseUntil)
		if err == nil && skills != "{}" {
			err = json.Unmarshal([]byte(skills), &e.Skills)
		}
		e.Callback = callback.V
		d.Entries = append(d.Entries, e)
		return err
	})
}

func (d *planBuilder) readQueues(ctx context.Context) error {
	var ids []string
	for _, e := range d.Entries {
		if _, known := d.Queues[e.QueueID]; !known {
			d.Queues[e.QueueID] = Queue{}
			ids = append(ids, e.QueueID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	found, err := listQueues(ctx, d.q, db.Where(queueColumns, d.org).In("k.id", idFilter(ids)), "", maxQueues)
	for _, k := range found {
		if _, wanted := d.Queues[k.ID]; wanted {
			d.Queues[k.ID] = k
		}
	}
	return err
}

// idFilter returns the ids for a statement, or nil, which reads all rows, if there are more than 200.
func idFilter(ids []string) []string {
	if len(ids) > 200 {
		return nil
	}
	return ids
}

func (d *planBuilder) readMembers(ctx context.Context) error {
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
	found, err := members(ctx, d.q, d.org, idFilter(ids))
	if err != nil {
		return err
	}
	if len(fewest) > 0 {
		err = d.s.withStats(ctx, d.q, d.org, found)
	} else {
		err = d.s.withPresence(ctx, d.q, d.org, found)
	}
	d.members = map[string][]Member{}
	for _, m := range found {
		d.members[m.QueueID] = append(d.members[m.QueueID], m)
		if m.isStaffing() {
			d.Staffed[m.QueueID]++
		}
		if m.SignedIn && m.state != nil {
			d.planAgain(m.state.NextChangeAt())
		}
	}
	return err
}

// planAgain requests a new plan at a time.
func (d *planBuilder) planAgain(at time.Time) {
	if at.After(d.now) && (d.NextAt.IsZero() || at.Before(d.NextAt)) {
		d.NextAt = at
	}
}

func (d *planBuilder) readOffers(ctx context.Context) error {
	const text = `SELECT id, agent_id, status FROM queue_offers WHERE org_id = $1 AND status IN ('offering', 'connected')`
	return db.ForEach(ctx, d.q, "find offers", text, []any{d.org}, func(scan func(...any) error) error {
		var id, agent, status string
		err := scan(&id, &agent, &status)
		d.unavailable[agent] = true
		d.Offers[id] = status == OfferOpen
		return err
	})
}

// readHistory reads the unanswered offers of waiting entries.
func (d *planBuilder) readHistory(ctx context.Context) error {
	if !slices.ContainsFunc(d.Entries, func(e Entry) bool { return e.Offers > 0 }) {
		return nil
	}
	const text = `SELECT o.entry_id, o.agent_id, COUNT(*), MAX(o.ended_at) FROM queue_entries e
		JOIN queue_offers o ON o.org_id = e.org_id AND o.entry_id = e.id
		WHERE e.org_id = $1 AND e.status IN ('waiting', 'offering', 'callback_pending', 'callback_dialing') AND e.offers > 0
		AND o.ended_at IS NOT NULL
		GROUP BY o.entry_id, o.agent_id`
	return db.ForEach(ctx, d.q, "find past offers", text, []any{d.org}, func(scan func(...any) error) error {
		var entry, agent string
		var times int
		var last db.Time
		err := scan(&entry, &agent, &times, &last)
		d.history[[2]string{entry, agent}] = offerHistory{times, last.Time}
		return err
	})
}

// assign chooses the agents to ring for an entry.
func (d *planBuilder) assign(e Entry) {
	k := d.Queues[e.QueueID]
	joins := e.Status == Offering && k.Strategy == "ring_all" // also ring agents that become free
	if e.Status != Waiting && e.Status != CallbackPending && !joins || k.ID == "" {
		return
	}
	ours := e.Status == CallbackPending || e.Node == d.s.cfg.Node
	if !ours && e.leaseExpired(d.now) {
		return
	}
	if e.RetryAt.After(d.now) {
		d.planAgain(e.RetryAt.Time)
		return
	}
	m := Assignment{Entry: e}
	for _, x := range d.candidates(k, e, joins) {
		m.Agents = append(m.Agents, x.UserID)
		if x.state.NeedsUpdate() {
			m.Unpublished = append(m.Unpublished, x.UserID)
		}
		d.unavailable[x.UserID] = true
		if k.Strategy != "ring_all" || e.Status == CallbackPending {
			break
		}
	}
	if len(m.Agents) > 0 && ours {
		d.Assignments = append(d.Assignments, m)
	}
}

// candidates returns the agents that can be rung for an entry, in order. If the entry is being offered already, it
// returns only agents without an offer of it yet.
func (d *planBuilder) candidates(k Queue, e Entry, joins bool) (found []Member) {
	pause := max(time.Duration(k.RetryDelay)*time.Second, minRetryDelay)
	for _, m := range d.members[k.ID] {
		t := d.history[[2]string{e.ID, m.UserID}]
		switch {
		case d.unavailable[m.UserID] || !m.canTakeCall() || !m.hasSkills(k.RequiredSkills, e.Skills):
		case joins && t.count > 0:
		case t.count > 0 && t.last.Add(pause).After(d.now):
			d.planAgain(t.last.Add(pause))
		case d.s.cfg.PendingReleases.HasPendingRelease(m.UserID): // the next INVITE must not overtake the BYE or CANCEL of the last call
			d.planAgain(d.now.Add(releaseRecheck))
		default:
			found = append(found, m)
		}
	}
	k.sortMembers(found, e)
	slices.SortStableFunc(found, func(a, b Member) int {
		return d.history[[2]string{e.ID, a.UserID}].count - d.history[[2]string{e.ID, b.UserID}].count
	})
	return found
}

// releaseRecheck is the delay until an agent with a pending release is checked again.
const releaseRecheck = 10 * time.Millisecond

// minRetryDelay is the least time until an agent is rung again for the same entry.
const minRetryDelay = time.Second

// leaseExpired reports whether the node of an entry has stopped renewing the lease.
func (e Entry) leaseExpired(now time.Time) bool {
	return !e.LeaseUntil.IsZero() && e.LeaseUntil.Before(now)
}

// isStaffing reports whether a member can take callers, now or after the current call.
func (m Member) isStaffing() bool {
	if !m.SignedIn {
		return false
	}
	switch m.Presence.Status {
	case agent.Ringing, agent.Busy:
		return true
	case agent.Available, agent.WrapUp:
		return !m.Paused && m.isReachable()
	}
	return false
}

// OrgsWithCallbacks returns the ids of organisations with pending or dialling callbacks. No node owns those.
func (s *Service) OrgsWithCallbacks(ctx context.Context) (found []string, err error) {
	// tenant: reads the entries of all organisations
	const text = `SELECT DISTINCT org_id FROM queue_entries WHERE ` + openCondition +
		` AND status IN ('callback_pending', 'callback_dialing')`
	err = db.ForEach(ctx, s.cfg.DB.Read(ctx), "find organisations", text, nil, func(scan func(...any) error) error {
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
	LeaseRenewInterval = 5 * time.Second
	entryLease         = 20 * time.Second
)

// RenewLease extends the leases of this node's calls of an organisation.
func (s *Service) RenewLease(ctx context.Context, org string, calls []string) error {
	return s.cfg.DB.TxRelaxed(ctx, func(tx db.Querier) error {
		for part := range slices.Chunk(calls, 200) {
			f := db.Where(`UPDATE queue_entries SET lease_until = $2 WHERE org_id = $1 AND `+openCondition, org,
				db.At(s.cfg.Clock.Now().Add(entryLease)))
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
