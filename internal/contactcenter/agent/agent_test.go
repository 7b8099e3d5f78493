package agent_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"soniq/internal/contactcenter/agent"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op/optest"
	"soniq/internal/platform/visibility/visibilitytest"
	"soniq/internal/telephony/call"
)

func TestPresence_FollowsPhonesAndCalls(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.wantPresence(t, "offline", "")
		h.register(t)
		if a := h.wantPresence(t, "available", ""); a.At("devices_registered") != float64(1) || a.Text("availability") != "available" || a.At("skills.french") != float64(7) {
			t.Errorf("got %s", a.Bytes)
		}
		if u := h.do("GET", "/users/"+h.ada, nil).Want(200); u.Text("presence.status") != "available" {
			t.Errorf("the user's presence: %s", u.Bytes)
		}
		n := h.ring(t)
		h.wantPresence(t, "ringing", "")
		h.answer(t, n)
		h.wantPresence(t, "busy", n.ID)
		h.advance(time.Minute)
		h.end(t, n, h.now().Add(-time.Minute))
		a := h.wantPresence(t, "available", "")
		if a.At("today.answered") != float64(1) || a.At("today.talk_seconds") != float64(60) || a.At("today.average_handle_seconds") != float64(60) {
			t.Errorf("today: %s", a.Bytes)
		}
		missed := h.ring(t)
		h.end(t, missed, time.Time{})
		if a := h.wantPresence(t, "available", ""); a.At("today.missed") != float64(1) {
			t.Errorf("after a missed call: %s", a.Bytes)
		}
		h.advance(2 * time.Hour)
		h.wantPresence(t, "offline", "")
		if err := h.Reconcile(h.ctx); err != nil {
			t.Fatal(err)
		}
		if got, want := h.publishedPresences(t), "available ringing busy available ringing available offline"; got != want {
			t.Errorf("told %q, want %q", got, want)
		}
		s := h.do("GET", "/agents/"+h.ada+"/stats", nil).Want(200)
		if s.At("busy_seconds") != float64(60) || s.At("available_seconds") != float64(7200) || s.At("occupancy_rate") != float64(1) {
			t.Errorf("stats %s", s.Bytes)
		}
	})
}

func TestSetPresence_EndsAtUntil(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.register(t)
		until := h.now().Add(10 * time.Minute).Format(time.RFC3339)
		a := h.do("PUT", "/agents/"+h.ada+"/presence", fmt.Sprintf(`{"status":"away","reason":"lunch","until":%q}`, until)).Want(200)
		if a.Text("presence.status") != "away" || a.Text("presence.reason") != "lunch" || a.Text("availability") != "away" || a.Text("presence.until") == "" {
			t.Errorf("got %s", a.Bytes)
		}
		h.advance(11 * time.Minute)
		h.wantPresence(t, "available", "")
		if err := h.PublishDue(h.ctx); err != nil {
			t.Fatal(err)
		}
		h.do("PUT", "/agents/"+h.ada+"/presence", `{"status":"offline"}`).Want(200)
		h.wantPresence(t, "offline", "")
		h.do("PUT", "/agents/"+h.ada+"/presence", `{"status":"available"}`).Want(200)
		if got, want := h.publishedPresences(t), "available away available offline available"; got != want {
			t.Errorf("told %q, want %q", got, want)
		}
	})
}

func TestSetPresence_DNDSharedWithUser(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.register(t)
		h.do("PUT", "/agents/"+h.ada+"/presence", `{"status":"dnd","reason":"focus"}`).Want(200)
		if u := h.do("GET", "/users/"+h.ada, nil).Want(200); u.At("dnd.enabled") != true || u.Text("presence.status") != "dnd" {
			t.Errorf("the user: %s", u.Bytes)
		}
		h.do("PUT", "/users/"+h.ada+"/dnd", `{"enabled":false}`).Want(200)
		if a := h.wantPresence(t, "available", ""); a.Text("availability") != "available" {
			t.Errorf("got %s", a.Bytes)
		}
		h.do("PUT", "/users/"+h.ada+"/dnd", `{"enabled":true}`).Want(200)
		if a := h.wantPresence(t, "dnd", ""); a.Text("availability") != "dnd" {
			t.Errorf("got %s", a.Bytes)
		}
		h.do("PUT", "/agents/"+h.ada+"/presence", `{"status":"available"}`).Want(200)
		if u := h.do("GET", "/users/"+h.ada, nil).Want(200); u.At("dnd.enabled") != false {
			t.Errorf("the user: %s", u.Bytes)
		}
		if got, want := h.publishedPresences(t), "available dnd available dnd available"; got != want {
			t.Errorf("told %q, want %q", got, want)
		}
	})
}

func TestSetPresence_DuringCallAppliesAfterwards(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.register(t)
		n := h.ring(t)
		h.answer(t, n)
		a := h.do("PUT", "/agents/"+h.ada+"/presence", `{"status":"dnd","reason":"break"}`).Want(200)
		if a.Text("presence.status") != "busy" || a.Text("availability") != "available" {
			t.Errorf("at once: %s", a.Bytes)
		}
		if u := h.do("GET", "/users/"+h.ada, nil).Want(200); u.At("dnd.enabled") != false {
			t.Errorf("do-not-disturb at once: %s", u.Bytes)
		}
		h.end(t, n, h.now())
		if a := h.wantPresence(t, "dnd", ""); a.Text("availability") != "dnd" || a.Text("presence.reason") != "break" {
			t.Errorf("after it: %s", a.Bytes)
		}
		if u := h.do("GET", "/users/"+h.ada, nil).Want(200); u.At("dnd.enabled") != true {
			t.Errorf("do-not-disturb after it: %s", u.Bytes)
		}
		h.do("PUT", "/agents/"+h.ada+"/presence", `{"status":"available"}`).Want(200)
		n = h.ring(t)
		h.answer(t, n)
		a = h.do("PUT", "/agents/"+h.ada+"/presence", `{"status":"away","after_current_call":false}`).Want(200)
		if a.Text("presence.status") != "busy" || a.Text("availability") != "away" {
			t.Errorf("not after the call: %s", a.Bytes)
		}
	})
}

func TestWrapUpAndMissedPause_EndWithTime(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.register(t)
		tx := func(f func(ctx context.Context, tx db.Querier) error) {
			t.Helper()
			if err := d.TxContext(h.ctx, f); err != nil {
				t.Fatal(err)
			}
		}
		tx(func(ctx context.Context, tx db.Querier) error {
			return h.StartWrapUp(ctx, tx, h.org, h.ada, agent.WrapUpTime{Until: h.now().Add(10 * time.Second)})
		})
		if a := h.wantPresence(t, "wrap_up", ""); a.Text("wrap_up_until") == "" {
			t.Errorf("got %s", a.Bytes)
		}
		h.advance(11 * time.Second)
		h.wantPresence(t, "available", "")
		tx(func(ctx context.Context, tx db.Querier) error {
			return h.StartWrapUp(ctx, tx, h.org, h.ada, agent.WrapUpTime{Until: h.now().Add(10 * time.Second)})
		})
		h.do("PUT", "/agents/"+h.ada+"/presence", `{"status":"available"}`).Want(200)
		h.wantPresence(t, "available", "")
		for range 3 {
			h.wantPresence(t, "available", "")
			tx(func(ctx context.Context, tx db.Querier) error {
				return h.OfferMissed(ctx, tx, h.org, h.ada, 3, h.now().Add(time.Minute))
			})
		}
		if a := h.wantPresence(t, "away", ""); a.Text("presence.reason") != "missed_offers" || a.Text("availability") != "available" {
			t.Errorf("got %s", a.Bytes)
		}
		h.advance(61 * time.Second)
		h.wantPresence(t, "available", "")
	})
}

func TestRun_PublishesPresenceAfterRestart(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.crashed = true // as if the process had crashed before publishing
		h.register(t)
		n := h.ring(t)
		h.answer(t, n)
		if got := h.publishedPresences(t); got != "" {
			t.Fatalf("told %q", got)
		}
		ctx, stop := context.WithCancel(h.ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			h.Run(ctx, slog.New(slog.NewTextHandler(io.Discard, nil)))
		}()
		for h.publishedPresences(t) == "" && t.Context().Err() == nil {
			select {
			case <-done:
				t.Fatal("Run returned")
			default:
			}
		}
		stop()
		<-done
		if got := h.publishedPresences(t); got != "busy" {
			t.Errorf("told %q", got)
		}
	})
}

func TestListAgents_ByPresence(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	h.register(t)
	for i := range 5 {
		h.do("POST", "/users", fmt.Sprintf(`{"email":"u%d@example.com","first_name":"U%d"}`, i, i)).Want(201)
	}
	if a := h.do("GET", "/agents?status=available&include_total=true", nil).Want(200); a.At("total") != float64(1) || a.Text("data.0.id") != h.ada {
		t.Errorf("got %s", a.Bytes)
	}
	a := h.do("GET", "/agents?status=offline&limit=3&include_total=true", nil).Want(200)
	if a.At("has_more") != true || a.At("total") != float64(5) {
		t.Errorf("got %s", a.Bytes)
	}
	if a = h.do("GET", "/agents?status=offline&limit=3&cursor="+a.Text("next_cursor"), nil).Want(200); a.At("has_more") != false || a.Text("data.1.name") != "U4" {
		t.Errorf("got %s", a.Bytes)
	}
	if a := h.do("GET", "/agents?skill=french", nil).Want(200); a.Text("data.0.id") != h.ada || a.Has("data.1", "id") {
		t.Errorf("got %s", a.Bytes)
	}
	h.do("PUT", "/agents/"+h.ada+"/presence", `{"status":"asleep","reason":"`+strings.Repeat("x", 61)+`","until":"2001-01-01T00:00:00Z"}`).Want(422).
		Refused("validation_failed", "status invalid_value", "reason invalid_length", "until in_the_past")
	h.do("GET", "/agents/usr_none", nil).Want(404)
	h.do("GET", "/agents/"+h.ada+"/stats?since=2026-01-02&until=2026-01-01", nil).Want(400).Refused("invalid_query")
}

func TestSetPresence_OwnOnly(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	bob := h.do("POST", "/users", `{"email":"bob@example.com","first_name":"Bob"}`).Want(201).Text("id")
	p := optest.Admin(h.org)
	p.Scopes, p.UserID = nil, h.ada
	h.server.Do(p, "PUT", "/agents/"+h.ada+"/presence", `{"status":"away"}`).Want(200)
	h.server.Do(p, "PUT", "/agents/"+bob+"/presence", `{"status":"away"}`).Want(403).Refused("insufficient_scope")
}

// TestSetPresence_SupervisorsOfTheirQueues lets supervisors choose for members of their queues, and for everybody if they have none.
func TestSetPresence_SupervisorsOfTheirQueues(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		add := func(name, role string) string {
			return h.do("POST", "/users", fmt.Sprintf(`{"email":"%s@example.com","first_name":%q,"role":%q}`, name, name, role)).Want(201).Text("id")
		}
		bob, sue, sam := add("bob", "agent"), add("sue", "supervisor"), add("sam", "supervisor")
		o := visibilitytest.Org{T: t, DB: d, ID: h.org}
		o.Queue("que_1")
		o.Queue("que_2")
		o.Member("que_1", h.ada)
		o.Member("que_1", sue)
		o.Member("que_2", bob)
		choose := func(by, agent string, scopes ...access.Scope) *optest.Answer {
			p := optest.Admin(h.org)
			p.UserID, p.Scopes = by, scopes
			return h.server.Do(p, "PUT", "/agents/"+agent+"/presence", `{"status":"away"}`)
		}
		choose(sue, h.ada, access.QueuesAdmin).Want(200)
		choose(sue, sue, access.QueuesAdmin).Want(200)
		if a := choose(sue, bob, access.QueuesAdmin).Want(403).Refused("insufficient_scope"); a.Text("required_scopes.0") != "users:admin" {
			t.Errorf("the refusal: %s", a.Bytes)
		}
		if a := h.do("GET", "/agents/"+bob, nil).Want(200); a.Text("availability") == "away" {
			t.Errorf("a refused choice was stored: %s", a.Bytes)
		}
		choose(sue, bob, access.QueuesRead).Want(403).Refused("insufficient_scope")
		choose(sue, bob, access.UsersAdmin).Want(200)
		choose(sam, bob, access.QueuesAdmin).Want(200)
		choose("", bob, access.QueuesAdmin).Want(200)
		choose(sue, "usr_unknown", access.QueuesAdmin).Want(404)
	})
}

// TestPresence_CallOfOwnPhone proves that presence follows a call whose legs are all known at its end, as the switch
// reports it: the platform then does not look for the users of the call.
func TestPresence_CallOfOwnPhone(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.register(t)
		n := call.New{Org: h.org, ID: db.NewID("call"), Direction: call.Outbound, Source: "device", From: "+442079460002", To: "+442079460001",
			StartedAt: h.now(), CallerLeg: db.NewID("leg"), CallerUser: h.ada, CallerDev: h.phone, CallerSIP: "x"}
		if err := h.calls.Begin(h.ctx, n); err != nil {
			t.Fatal(err)
		}
		h.publish(t)
		h.wantPresence(t, "busy", n.ID)
		leg := call.LegState{ID: n.CallerLeg, Role: "caller", UserID: h.ada, DeviceID: h.phone, Status: "ended",
			StartedAt: n.StartedAt, EndedAt: h.now()}
		err := h.calls.End(h.ctx, call.Ended{New: n, At: h.now(), Outcome: call.Outcome{Reason: "caller_hangup"},
			Legs:          []call.LegState{leg},
			PartsComplete: true})
		if err != nil {
			t.Fatal(err)
		}
		h.publish(t)
		h.wantPresence(t, "available", "")
		if got, want := h.publishedPresences(t), "available busy available"; got != want {
			t.Errorf("published %q, want %q", got, want)
		}
	})
}
