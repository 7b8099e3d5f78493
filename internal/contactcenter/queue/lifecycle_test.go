package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/internal/contactcenter/queue"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/telephony/call"
)

// entryStatus returns the state of an entry.
func (h *fixture) entryStatus(t testing.TB, entry string) string {
	t.Helper()
	var s string
	if err := h.d.Read(h.ctx).QueryRow(h.ctx, `SELECT status FROM queue_entries WHERE org_id = $1 AND id = $2`, h.org, entry).Scan(&s); err != nil {
		t.Fatal(err)
	}
	return s
}

func (h *fixture) presence(t *testing.T, agent string) string {
	t.Helper()
	return h.do("GET", "/agents/"+agent, nil).Want(200).Text("presence.status")
}

func TestOffer_RepeatedUntilAnswered(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id := h.addQueue(`,"missed_offers_limit":1,"wrap_up_seconds":30`)
		ada, bob := h.addAgent(t, "ada", id, ""), h.addAgent(t, "bob", id, "")
		e := h.enter(t, id)
		if e.Position != 1 || e.Status != queue.Waiting {
			t.Errorf("entered as %+v", e)
		}
		first := h.offer(t, e, ada)[0]
		if h.entryStatus(t, e.ID) != queue.Offering || h.presence(t, ada) != "ringing" {
			t.Errorf("%s, ada is %s", h.entryStatus(t, e.ID), h.presence(t, ada))
		}
		h.tx(t, func(ctx context.Context, tx db.Querier) error {
			_, err := h.DeclineOffer(ctx, tx, h.org, first.ID, queue.OfferNoAnswer)
			return err
		})
		if h.entryStatus(t, e.ID) != queue.Waiting || h.presence(t, ada) != "away" { // missed as many as the queue allows
			t.Errorf("%s, ada is %s", h.entryStatus(t, e.ID), h.presence(t, ada))
		}
		if got := h.candidates(t, e); got != "bob" {
			t.Errorf("would ask %q", got)
		}
		second := h.offer(t, e, bob)[0]
		h.tx(t, func(ctx context.Context, tx db.Querier) error {
			got, err := h.AnswerOffer(ctx, tx, h.org, second.ID)
			if got.Status != queue.Connected || *got.OfferedAgentID != bob {
				t.Errorf("answered: %+v", got)
			}
			return err
		})
		h.tx(t, func(ctx context.Context, tx db.Querier) error {
			return h.CompleteEntry(ctx, tx, h.org, e.ID, time.Minute)
		})
		if h.entryStatus(t, e.ID) != queue.Completed || h.presence(t, bob) != "wrap_up" {
			t.Errorf("%s, bob is %s", h.entryStatus(t, e.ID), h.presence(t, bob))
		}
		h.advance(31 * time.Second)
		if got := h.presence(t, bob); got != "available" {
			t.Errorf("after wrap-up bob is %s", got)
		}
		var body string
		row := d.Read(h.ctx).QueryRow(h.ctx, `SELECT body FROM events WHERE org_id = $1 AND kind = 'queue.call_waiting'`, h.org)
		if err := row.Scan(&body); err != nil || !strings.Contains(body, `"position":1,"callers_waiting":1,"agents_available":2`) {
			t.Errorf("told %s, %v", body, err)
		}
	})
}

func TestAnswerOffer_OneOfConcurrentAgentsWins(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id := h.addQueue(`,"strategy":"ring_all"`)
		var agents []string
		for i := range 5 {
			agents = append(agents, h.addAgent(t, fmt.Sprintf("a%d", i), id, ""))
		}
		e := h.enter(t, id)
		made := h.offer(t, e, agents...)
		if len(made) != 5 {
			t.Fatalf("%d were rung", len(made))
		}
		var wg sync.WaitGroup
		answered := make(chan string, 5)
		for _, o := range made {
			wg.Go(func() {
				err := d.TxContext(h.ctx, func(ctx context.Context, tx db.Querier) error {
					_, err := h.AnswerOffer(ctx, tx, h.org, o.ID)
					return err
				})
				switch {
				case err == nil:
					answered <- o.AgentID
				case !errors.Is(err, queue.ErrGone):
					t.Errorf("answer: %v", err)
				}
			})
		}
		wg.Wait()
		close(answered)
		if len(answered) != 1 {
			t.Fatalf("%d answered", len(answered))
		}
		who := <-answered
		for _, a := range agents {
			if got := h.presence(t, a); a != who && got != "available" {
				t.Errorf("%s is %s", a, got)
			}
		}
	})
}

// TestOffer_OneCallerPerAgent has concurrent dispatchers of several queues offer to the same few agents.
func TestOffer_OneCallerPerAgent(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		queues := []string{h.addQueue(""), h.addQueue(""), h.addQueue("")}
		var agents []string
		for i := range 3 {
			a := h.addAgent(t, fmt.Sprintf("a%d", i), queues[0], "")
			for _, q := range queues[1:] {
				h.do("POST", "/queues/"+q+"/members", fmt.Sprintf(`{"user_id":%q}`, a)).Want(201)
			}
			agents = append(agents, a)
		}
		const callers = 24
		var line []queue.Entry
		for i := range callers {
			line = append(line, h.enter(t, queues[i%3]))
		}
		var mu sync.Mutex // guards open
		open := map[string]int{}
		hold := func(agent string, n int) {
			mu.Lock()
			defer mu.Unlock()
			if open[agent] += n; open[agent] > 1 {
				t.Errorf("%s has %d callers at once", agent, open[agent])
			}
		}
		var wg sync.WaitGroup
		for _, e := range line {
			wg.Go(func() {
				for {
					made, err := h.Offer(h.ctx, e, agents[:1+len(e.ID)%3], time.Minute)
					if errors.Is(err, queue.ErrGone) {
						if h.entryStatus(t, e.ID) != queue.Waiting {
							t.Errorf("an offer that failed left the caller %s", h.entryStatus(t, e.ID))
						}
						continue
					}
					if err != nil {
						t.Errorf("offer: %v", err)
						return
					}
					for _, o := range made {
						hold(o.AgentID, 1)
					}
					for _, o := range made[1:] {
						hold(o.AgentID, -1) // before the commit, because another may take them at once
					}
					err = d.TxContext(h.ctx, func(ctx context.Context, tx db.Querier) error {
						_, err := h.AnswerOffer(ctx, tx, h.org, made[0].ID)
						return err
					})
					if err != nil {
						t.Errorf("answer: %v", err)
					}
					hold(made[0].AgentID, -1)
					err = d.TxContext(h.ctx, func(ctx context.Context, tx db.Querier) error {
						return h.CompleteEntry(ctx, tx, h.org, e.ID, 0)
					})
					if err != nil {
						t.Errorf("complete: %v", err)
					}
					return
				}
			})
		}
		wg.Wait()
		for _, e := range line {
			if got := h.entryStatus(t, e.ID); got != queue.Completed {
				t.Errorf("a caller is %s", got)
			}
		}
	})
}

func TestOffer_EndsWithItsLease(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id := h.addQueue("")
		ada := h.addAgent(t, "ada", id, "")
		e := h.enter(t, id)
		o := h.offer(t, e, ada)[0]
		h.advance(26 * time.Second) // ring time and five seconds
		if got := h.presence(t, ada); got != "available" {
			t.Errorf("past the lease ada is %s", got)
		}
		err := d.TxContext(h.ctx, func(ctx context.Context, tx db.Querier) error {
			_, err := h.AnswerOffer(ctx, tx, h.org, o.ID)
			return err
		})
		if !errors.Is(err, queue.ErrGone) {
			t.Errorf("answered past the lease: %v", err)
		}
		if err := h.Sweep(h.ctx); err != nil {
			t.Fatal(err)
		}
		if got := h.entryStatus(t, e.ID); got != queue.Waiting {
			t.Errorf("the caller is %s", got)
		}
		h.offer(t, e, ada)
	})
}

func TestSweep_KeepsOffersOfLiveNodeForAMinute(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id := h.addQueue("")
		ada := h.addAgent(t, "ada", id, "")
		e := h.enter(t, id)
		h.offer(t, e, ada)
		for _, c := range []struct {
			pass time.Duration
			want string
		}{{30 * time.Second, queue.Offering}, {30 * time.Second, queue.Offering}, {30 * time.Second, queue.Waiting}} {
			h.advance(c.pass)
			if err := h.RenewLease(h.ctx, h.org, []string{e.CallID}); err != nil {
				t.Fatal(err)
			}
			if err := h.Sweep(h.ctx); err != nil {
				t.Fatal(err)
			}
			if got := h.entryStatus(t, e.ID); got != c.want {
				t.Errorf("the caller is %s, want %s", got, c.want)
			}
		}
	})
}

func TestSweep_EndsEntriesOfEndedCalls(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id := h.addQueue("")
		ada := h.addAgent(t, "ada", id, "")
		gone, spoke := h.enter(t, id), h.enter(t, id)
		o := h.offer(t, spoke, ada)[0]
		h.tx(t, func(ctx context.Context, tx db.Querier) error {
			_, err := h.AnswerOffer(ctx, tx, h.org, o.ID)
			return err
		})
		for _, e := range []queue.Entry{gone, spoke} {
			end := call.Ended{New: call.New{Org: h.org, ID: e.CallID, Direction: call.Inbound, StartedAt: h.now()}, At: h.now(),
				Outcome: call.Outcome{Reason: "node_crash"}}
			if err := h.calls.End(h.ctx, end); err != nil {
				t.Fatal(err)
			}
		}
		h.advance(10 * time.Second)
		if err := h.Sweep(h.ctx); err != nil {
			t.Fatal(err)
		}
		if h.entryStatus(t, gone.ID) != queue.Abandoned || h.entryStatus(t, spoke.ID) != queue.Completed ||
			h.presence(t, ada) != "wrap_up" {
			t.Errorf("they are %s and %s, ada is %s", h.entryStatus(t, gone.ID), h.entryStatus(t, spoke.ID), h.presence(t, ada))
		}
	})
}

func TestEnter_RefusalErrors(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		enter := func(id string) error {
			c := h.newCall(t)
			return d.TxContext(h.ctx, func(ctx context.Context, tx db.Querier) error {
				_, err := h.Enter(ctx, tx, queue.Caller{Org: h.org, QueueID: id, CallID: c, From: "anonymous"})
				return err
			})
		}
		full, empty, closed := h.addQueue(`,"max_callers":1`), h.addQueue(`,"join_when_no_agents":false`), h.addQueue(`,"hours":{"weekly":{}}`)
		for id, want := range map[string]error{full: nil, empty: queue.ErrNoAgents, closed: queue.ErrClosed} {
			if err := enter(id); !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		}
		if err := enter(full); !errors.Is(err, queue.ErrFull) {
			t.Errorf("a second caller: %v", err)
		}
		h.addAgent(t, "ada", empty, "")
		if err := enter(empty); err != nil {
			t.Errorf("with an agent: %v", err)
		}
		e := h.enter(t, h.addQueue(""))
		err := d.TxContext(h.ctx, func(ctx context.Context, tx db.Querier) error {
			_, err := h.Enter(ctx, tx, queue.Caller{Org: h.org, QueueID: e.QueueID, CallID: e.CallID, From: "x"})
			return err
		})
		if !db.IsConflict(err) {
			t.Errorf("a call that waits already: %v", err)
		}
	})
}

// TestEnter_LimitHoldsForConcurrentCallers lets twelve callers enter a queue for two at the same moment.
func TestEnter_LimitHoldsForConcurrentCallers(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id, full := h.addQueue(`,"max_callers":2`), make(chan bool)
		for range 12 {
			c := h.newCall(t)
			go func() {
				err := d.TxContext(h.ctx, func(ctx context.Context, tx db.Querier) error {
					_, err := h.Enter(ctx, tx, queue.Caller{Org: h.org, QueueID: id, CallID: c, From: "anonymous"})
					return err
				})
				if err != nil && !errors.Is(err, queue.ErrFull) {
					t.Error(err)
				}
				full <- err != nil
			}()
		}
		entered := 0
		for range 12 {
			if !<-full {
				entered++
			}
		}
		if entered != 2 {
			t.Errorf("%d callers entered", entered)
		}
	})
}

func TestQueueUpdated_PublishedOncePerChange(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		told := func() (n int) {
			t.Helper()
			if err := h.PublishUpdates(h.ctx); err != nil {
				t.Fatal(err)
			}
			row := d.Read(h.ctx).QueryRow(h.ctx, `SELECT COUNT(*) FROM events WHERE org_id = $1 AND kind = 'queue.updated'`, h.org)
			if err := row.Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		id := h.addQueue("")
		before := told()
		ada := h.addAgent(t, "ada", id, "")
		if n := told(); n != before+1 {
			t.Errorf("an agent came: %d events", n-before)
		}
		h.enter(t, id)
		if n := told(); n != before+2 {
			t.Errorf("a caller came: %d events", n-before)
		}
		h.do("PATCH", "/queues/"+id, `{"name":"x"}`).Want(200)
		if n := told(); n != before+2 {
			t.Errorf("nobody came or went: %d events", n-before)
		}
		h.do("PUT", "/agents/"+ada+"/presence", `{"status":"away"}`).Want(200)
		if n := told(); n != before+3 {
			t.Errorf("an agent went: %d events", n-before)
		}
	})
}
