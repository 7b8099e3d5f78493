package queue_test

import (
	"context"
	"testing"

	"soniq/internal/contactcenter/queue"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/telephony/call"
)

// withdrawals are the ways in which an agent takes no calls any more.
var withdrawals = map[string]func(h *fixture, user, queue string){
	"away": func(h *fixture, user, _ string) {
		h.do("PUT", "/agents/"+user+"/presence", `{"status":"away"}`).Want(200)
	},
	"away at once": func(h *fixture, user, _ string) {
		h.do("PUT", "/agents/"+user+"/presence", `{"status":"away","after_current_call":false}`).Want(200)
	},
	"offline": func(h *fixture, user, _ string) {
		h.do("PUT", "/agents/"+user+"/presence", `{"status":"offline"}`).Want(200)
	},
	"do-not-disturb of the agent": func(h *fixture, user, _ string) {
		h.do("PUT", "/agents/"+user+"/presence", `{"status":"dnd"}`).Want(200)
	},
	"do-not-disturb of the user": func(h *fixture, user, _ string) {
		h.do("PUT", "/users/"+user+"/dnd", `{"enabled":true}`).Want(200)
	},
	"suspended": func(h *fixture, user, _ string) { h.do("PATCH", "/users/"+user, `{"status":"suspended"}`).Want(200) },
	"removed":   func(h *fixture, user, _ string) { h.do("DELETE", "/users/"+user, nil).Want(204) },
	"paused": func(h *fixture, user, queue string) {
		h.do("PUT", "/agents/"+user+"/queues/"+queue, `{"signed_in":true,"paused":true}`).Want(200)
	},
	"signed out": func(h *fixture, user, queue string) {
		h.do("PATCH", "/queues/"+queue+"/members/"+user, `{"signed_in":false}`).Want(200)
	},
	"no member any more":    func(h *fixture, user, queue string) { h.do("DELETE", "/queues/"+queue+"/members/"+user, nil).Want(204) },
	"queues of the user":    func(h *fixture, user, _ string) { h.do("PATCH", "/users/"+user, `{"queue_ids":[]}`).Want(200) },
	"on another call":       func(h *fixture, user, _ string) { h.answerAnother(user, "inbound", "agent") },
	"phone no longer there": func(h *fixture, user, _ string) { h.unregister(user) },
	"suspended without phone": func(h *fixture, user, _ string) {
		h.unregister(user)
		h.do("PATCH", "/users/"+user, `{"status":"suspended"}`).Want(200)
	},
}

// unregister removes the registrations of a user's phones, as the removal of the phones does.
func (h *fixture) unregister(user string) {
	all, err := h.devices.OfUser(h.ctx, h.d.Read(h.ctx), h.org, user)
	if err == nil {
		err = h.devices.Save(h.ctx, all[0].ID, nil)
	}
	if err == nil {
		h.agents.UserChanged(h.org, user)
		err = h.agents.PublishChanged(h.ctx)
	}
	if err != nil {
		panic(err)
	}
}

// answerAnother lets a user answer another call.
func (h *fixture) answerAnother(user, source, role string) {
	id := db.NewID("call")
	n := call.New{Org: h.org, ID: id, Direction: call.Inbound, Source: source, From: "+12125550188", To: "+12125550100", StartedAt: h.now(),
		Status: call.Ringing}
	err := h.calls.Begin(h.ctx, n)
	if err == nil {
		err = h.calls.Change(h.ctx, call.Change{Org: h.org, ID: id, Revision: 1, At: h.now(), Row: call.State{Status: call.InProgress,
			AnsweredAt: h.now()}, Legs: []call.LegState{{ID: db.NewID("leg"), Role: role, UserID: user, Status: "answered",
			StartedAt: h.now(), AnsweredAt: h.now()}}})
	}
	if err == nil {
		h.agents.CallChanged(h.org, id, nil)
		err = h.agents.PublishChanged(h.ctx)
	}
	if err != nil {
		panic(err)
	}
}

// The agent who answers a callback is on a call of its own before the offer is connected. The offer stays.
func TestWithdrawn_NotByItsCallback(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id := h.addQueue("")
		ada := h.addAgent(t, "ada", id, "")
		o := h.offer(t, h.enter(t, id), ada)[0]
		h.answerAnother(ada, "callback", "caller")
		if got := h.offerStatus(t, o.ID); got != "offering" {
			t.Errorf("the offer is %s", got)
		}
	})
}

// https://github.com/signalwire/freeswitch/pull/800
// https://github.com/2600hz/kazoo/pull/2689
func TestWithdrawn_OfferCanceledWithoutMiss(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for way, withdraw := range withdrawals {
			t.Run(way, func(t *testing.T) {
				h := newFixture(t, d)
				id := h.addQueue(`,"missed_offers_limit":1`)
				names, ids := h.addAgents(t, id, "ada", "bob")
				e := h.enter(t, id)
				o := h.offer(t, e, ids[0])[0]
				h.ringLeg(t, e, ids[0])
				withdraw(h, ids[0], id)
				if got := h.offerStatus(t, o.ID); got != queue.OfferCanceled {
					t.Errorf("the offer is %s", got)
				}
				if got := h.plan(t, names, e); got != "1>bob" || h.entryStatus(t, e.ID) != queue.Waiting {
					t.Errorf("the plan is %q, the caller is %s", got, h.entryStatus(t, e.ID))
				}
				if way == "removed" {
					return
				}
				h.abandon(t, e)
				if a := h.do("GET", "/agents/"+ids[0], nil).Want(200); a.At("today.missed") != 0.0 || a.Text("presence.reason") == "missed_offers" {
					t.Errorf("a miss is counted: %s", a.Bytes)
				}
			})
		}
	})
}

// ringLeg adds a ringing leg of an agent to the call of an entry.
func (h *fixture) ringLeg(t *testing.T, e queue.Entry, agent string) {
	t.Helper()
	err := h.calls.Change(h.ctx, call.Change{Org: h.org, ID: e.CallID, Revision: 1, At: h.now(),
		Row: call.State{Status: call.Ringing, Stage: "queue"}, Legs: []call.LegState{{ID: db.NewID("leg"), Role: "agent", UserID: agent,
			Status: "ringing", StartedAt: h.now()}}})
	if err != nil {
		t.Fatal(err)
	}
}

// abandon ends an entry and its call: the caller hangs up.
func (h *fixture) abandon(t *testing.T, e queue.Entry) {
	t.Helper()
	h.tx(t, func(ctx context.Context, tx db.Querier) error {
		return h.Leave(ctx, tx, h.org, e.ID, queue.Abandoned, "caller_hangup")
	})
	n := call.New{Org: h.org, ID: e.CallID, Direction: call.Inbound, StartedAt: e.EnteredAt.Time}
	o := call.Outcome{Reason: "caller_hangup", Missed: "abandoned_in_queue"}
	if err := h.calls.End(h.ctx, call.Ended{New: n, At: h.now(), Outcome: o}); err != nil {
		t.Fatal(err)
	}
}

// The caller hangs up while the phone of the agent rings: the agent missed the call.
func TestMissed_CallerHangsUpWhileRinging(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id := h.addQueue("")
		ada := h.addAgent(t, "ada", id, "")
		e := h.enter(t, id)
		h.offer(t, e, ada)
		h.ringLeg(t, e, ada)
		h.abandon(t, e)
		if a := h.do("GET", "/agents/"+ada, nil).Want(200); a.At("today.missed") != 1.0 {
			t.Errorf("the call is not missed: %s", a.Bytes)
		}
	})
}

func (h *fixture) offerStatus(t *testing.T, id string) (status string) {
	t.Helper()
	row := h.d.Read(h.ctx).QueryRow(h.ctx, `SELECT status FROM queue_offers WHERE org_id = $1 AND id = $2`, h.org, id)
	if err := row.Scan(&status); err != nil {
		t.Fatal(err)
	}
	return status
}

// A choice during a call does not end the call: an agent who talks to the caller stays.
func TestWithdrawn_AnsweredCallStays(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id := h.addQueue("")
		ada := h.addAgent(t, "ada", id, "")
		e := h.enter(t, id)
		o := h.offer(t, e, ada)[0]
		h.tx(t, func(ctx context.Context, tx db.Querier) error {
			_, err := h.AnswerOffer(ctx, tx, h.org, o.ID)
			return err
		})
		h.do("PUT", "/agents/"+ada+"/presence", `{"status":"away","after_current_call":false}`).Want(200)
		if got := h.offerStatus(t, o.ID); got != queue.OfferConnected || h.entryStatus(t, e.ID) != queue.Connected {
			t.Errorf("the offer is %s, the caller is %s", got, h.entryStatus(t, e.ID))
		}
	})
}
