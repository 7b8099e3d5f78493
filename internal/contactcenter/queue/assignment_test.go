package queue_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"soniq/internal/contactcenter/queue"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
)

// plan returns the assignments as "1>ada,bob 2>carol", with the index of each entry in e.
func (h *fixture) plan(t *testing.T, names map[string]string, e ...queue.Entry) string {
	t.Helper()
	p, err := h.Plan(h.ctx, h.org)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, m := range p.Assignments {
		for i, x := range e {
			if x.ID == m.Entry.ID {
				var who []string
				for _, a := range m.Agents {
					who = append(who, names[a])
				}
				all = append(all, fmt.Sprintf("%d>%s", i+1, strings.Join(who, ",")))
			}
		}
	}
	return strings.Join(all, " ")
}

// addAgents adds agents as members of a queue.
func (h *fixture) addAgents(t *testing.T, id string, names ...string) (by map[string]string, ids []string) {
	t.Helper()
	by = map[string]string{}
	for _, n := range names {
		a := h.addAgent(t, n, id, "")
		by[a], ids = n, append(ids, a)
	}
	return by, ids
}

func (h *fixture) declineOffer(t *testing.T, o queue.Offer, result string) {
	t.Helper()
	h.tx(t, func(ctx context.Context, tx db.Querier) error {
		_, err := h.DeclineOffer(ctx, tx, h.org, o.ID, result)
		return err
	})
}

func TestPlan_PriorityAcrossQueues(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		low, high := h.addQueue(""), h.addQueue(`,"priority":5`)
		names, ids := h.addAgents(t, low, "ada", "bob")
		h.do("POST", "/queues/"+high+"/members", fmt.Sprintf(`{"user_id":%q}`, ids[0])).Want(201)
		first, second, vip := h.enter(t, low), h.enter(t, low), h.enter(t, high)
		if got := h.plan(t, names, first, second, vip); got != "3>ada 1>bob" {
			t.Errorf("the plan is %s", got)
		}
		o := h.offer(t, vip, ids[0])[0]
		if got := h.plan(t, names, first, second, vip); got != "1>bob" {
			t.Errorf("while ada rings the plan is %s", got)
		}
		h.tx(t, func(ctx context.Context, tx db.Querier) error {
			_, err := h.AnswerOffer(ctx, tx, h.org, o.ID)
			return err
		})
		h.offer(t, first, ids[1])
		if got := h.plan(t, names, first, second, vip); got != "" {
			t.Errorf("with nobody free the plan is %s", got)
		}
	})
}

// A caller that is moved to the first place is offered first there. An agent of two queues of one priority is still offered calls
// (https://github.com/asterisk/asterisk/issues/1691). Of many callers the one that waits longest is
// (https://github.com/signalwire/freeswitch/issues/2511).
func TestPlan_MovedCallerAcrossQueues(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id, other := h.addQueue(""), h.addQueue("")
		names, ids := h.addAgents(t, id, "ada")
		h.do("POST", "/queues/"+other+"/members", fmt.Sprintf(`{"user_id":%q}`, ids[0])).Want(201)
		all := []queue.Entry{h.enter(t, id), h.enter(t, other), h.enter(t, id)}
		for range 10 {
			all = append(all, h.enter(t, id))
		}
		if got := h.plan(t, names, all...); got != "1>ada" {
			t.Errorf("the plan of 13 callers is %s", got)
		}
		h.do("PATCH", "/queues/"+id+"/calls/"+all[12].CallID, `{"position":1}`).Want(200)
		if got := h.plan(t, names, all...); got != "13>ada" && got != "2>ada" {
			t.Errorf("with a caller moved to the first place the plan is %s", got)
		}
	})
}

func TestPlan_SkipsAgentWithPendingRelease(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id := h.addQueue("")
		names, ids := h.addAgents(t, id, "ada", "bob")
		h.fake.leaving = ids[0]
		first, second := h.enter(t, id), h.enter(t, id)
		if got := h.plan(t, names, first, second); got != "1>bob" {
			t.Errorf("while ada's telephone is being let go the plan is %s", got)
		}
		if p, err := h.Plan(h.ctx, h.org); err != nil || p.NextAt.IsZero() || p.NextAt.Sub(h.now()) > 100*time.Millisecond {
			t.Errorf("it is looked at again at %v (now %v), %v", p.NextAt, h.now(), err)
		}
		h.fake.leaving = ""
		if got := h.plan(t, names, first, second); got != "1>ada 2>bob" {
			t.Errorf("then the plan is %s", got)
		}
	})
}

func TestPlan_DeclinedAgentLastAndAfterRetryDelay(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id := h.addQueue(`,"retry_delay_seconds":10,"missed_offers_limit":0`)
		names, ids := h.addAgents(t, id, "ada", "bob")
		e := h.enter(t, id)
		if got := h.plan(t, names, e); got != "1>ada" {
			t.Errorf("first %s", got)
		}
		h.declineOffer(t, h.offer(t, e, ids[0])[0], queue.OfferRejected)
		e.Status = queue.Waiting
		if got := h.plan(t, names, e); got != "1>bob" {
			t.Errorf("after ada refused %s", got)
		}
		h.declineOffer(t, h.offer(t, e, ids[1])[0], queue.OfferNoAnswer)
		if got := h.plan(t, names, e); got != "" {
			t.Errorf("at once after both %s", got)
		}
		p, err := h.Plan(h.ctx, h.org)
		if err != nil || p.NextAt.Sub(h.now()) > 10*time.Second || p.NextAt.Before(h.now()) {
			t.Errorf("looks again at %s, %v", p.NextAt, err)
		}
		h.advance(11 * time.Second)
		if got := h.plan(t, names, e); got != "1>ada" {
			t.Errorf("after the delay %s", got)
		}
	})
}

func TestPlan_LeastOfferedAgentFirst(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id := h.addQueue(`,"retry_delay_seconds":10,"missed_offers_limit":0`)
		names, ids := h.addAgents(t, id, "ada")
		e := h.enter(t, id)
		h.declineOffer(t, h.offer(t, e, ids[0])[0], queue.OfferRejected)
		e.Status = queue.Waiting
		h.advance(11 * time.Second)
		later, _ := h.addAgents(t, id, "cem") // idle for a shorter time than ada
		maps.Copy(names, later)
		if got := h.plan(t, names, e); got != "1>cem" {
			t.Errorf("after ada refused and cem came: %s", got)
		}
	})
}

func TestDeclineOffer_UnreachablePhoneNotCountedAsMissed(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id := h.addQueue(`,"missed_offers_limit":1`)
		ada := h.addAgent(t, "ada", id, "")
		e := h.enter(t, id)
		h.declineOffer(t, h.offer(t, e, ada)[0], queue.OfferFailed)
		if got := h.presence(t, ada); got != "available" {
			t.Errorf("ada is %s", got)
		}
		h.declineOffer(t, h.offer(t, e, ada)[0], queue.OfferRejected)
		if got := h.presence(t, ada); got != "away" {
			t.Errorf("after refusing ada is %s", got)
		}
	})
}

func TestPlan_RingAllAddsFreedAgents(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id := h.addQueue(`,"strategy":"ring_all"`)
		names, ids := h.addAgents(t, id, "ada", "bob", "carol")
		h.do("PUT", "/agents/"+ids[2]+"/presence", `{"status":"away"}`).Want(200)
		e := h.enter(t, id)
		if got := h.plan(t, names, e); got != "1>ada,bob" {
			t.Errorf("first %s", got)
		}
		made := h.offer(t, e, ids[0], ids[1])
		h.do("PUT", "/agents/"+ids[2]+"/presence", `{"status":"available"}`).Want(200)
		if got := h.plan(t, names, e); got != "1>carol" {
			t.Errorf("then %s", got)
		}
		e.Status = queue.Offering
		more := h.offer(t, e, ids[2])
		h.declineOffer(t, made[0], queue.OfferRejected)
		if got := h.entryStatus(t, e.ID); got != queue.Offering {
			t.Errorf("while others ring the caller is %s", got)
		}
		h.tx(t, func(ctx context.Context, tx db.Querier) error {
			_, err := h.AnswerOffer(ctx, tx, h.org, more[0].ID)
			return err
		})
		if got := h.presence(t, ids[1]); got != "available" {
			t.Errorf("bob is %s", got)
		}
	})
}

func TestSignOut_CancelsOffers(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id := h.addQueue("")
		names, ids := h.addAgents(t, id, "ada", "bob")
		e := h.enter(t, id)
		h.offer(t, e, ids[0])
		h.do("PUT", "/agents/"+ids[0]+"/queues/"+id, `{"signed_in":false}`).Want(200)
		if h.entryStatus(t, e.ID) != queue.Waiting || h.presence(t, ids[0]) != "available" {
			t.Errorf("%s, ada is %s", h.entryStatus(t, e.ID), h.presence(t, ids[0]))
		}
		if got := h.plan(t, names, e); got != "1>bob" {
			t.Errorf("the plan is %s", got)
		}
	})
}

func TestRevertAnswer_CallerWaitsAgain(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id := h.addQueue("")
		ada := h.addAgent(t, "ada", id, "")
		for stays, want := range map[bool]string{true: queue.Waiting, false: queue.Abandoned} {
			e := h.enter(t, id)
			o := h.offer(t, e, ada)[0]
			h.tx(t, func(ctx context.Context, tx db.Querier) error {
				_, err := h.AnswerOffer(ctx, tx, h.org, o.ID)
				return err
			})
			h.tx(t, func(ctx context.Context, tx db.Querier) error {
				taken, err := h.RevertAnswer(ctx, tx, h.org, o.ID, queue.OfferCanceled, stays)
				if !taken {
					t.Error("nothing was taken back")
				}
				return err
			})
			if h.entryStatus(t, e.ID) != want || h.presence(t, ada) != "available" {
				t.Errorf("%s, ada is %s", h.entryStatus(t, e.ID), h.presence(t, ada))
			}
			h.tx(t, func(ctx context.Context, tx db.Querier) error {
				return h.CallEnded(ctx, tx, h.org, e.CallID, "caller_hangup", false)
			})
		}
	})
}

func TestPlan_IgnoresEntriesOfDeadNode(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id := h.addQueue("")
		names, _ := h.addAgents(t, id, "ada")
		theirs := h.enter(t, id)
		h.exec(t, `UPDATE queue_entries SET node = 'n2' WHERE org_id = $1 AND id = $2`, h.org, theirs.ID)
		ours := h.enter(t, id)
		if got := h.plan(t, names, theirs, ours); got != "" {
			t.Errorf("before the other node has offered its caller: %s", got)
		}
		h.advance(25 * time.Second)
		h.tx(t, func(ctx context.Context, _ db.Querier) error { return h.RenewLease(ctx, h.org, []string{ours.CallID}) })
		if got := h.plan(t, names, theirs, ours); got != "2>ada" {
			t.Errorf("the other node is silent: %s", got)
		}
		h.advance(time.Minute)
		h.tx(t, func(ctx context.Context, _ db.Querier) error { return h.RenewLease(ctx, h.org, []string{ours.CallID}) })
		if err := h.Sweep(h.ctx); err != nil {
			t.Fatal(err)
		}
		if h.entryStatus(t, theirs.ID) != queue.Abandoned || h.entryStatus(t, ours.ID) != queue.Waiting {
			t.Errorf("they are %s and %s", h.entryStatus(t, theirs.ID), h.entryStatus(t, ours.ID))
		}
	})
}

func (h *fixture) exec(t *testing.T, text string, args ...any) {
	t.Helper()
	h.tx(t, func(ctx context.Context, tx db.Querier) error { _, err := tx.Exec(ctx, text, args...); return err })
}
