package queue_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"soniq/internal/contactcenter/queue"
	"soniq/internal/identity/org"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op/optest"
)

func TestQueue_RoundTrip(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		a := h.do("POST", "/queues", `{"name":"Support","extension":"600","strategy":"ring_all","overflow":{"to":"ext:100","after_seconds":60},
			"music_audio_id":"aud_music","announce":{"position":true},"callback":{"enabled":true,"key":"5"},"required_skills":{"french":3},
			"hours":{"weekly":{"mon":[{"from":"09:00","to":"17:30"}]},"exceptions":[{"date":"2026-12-25","closed":true,"label":"Christmas"}]}}`).Want(201)
		id := a.Text("id")
		for path, want := range map[string]any{"extension": "600", "strategy": "ring_all", "overflow.to": "ext:100", "overflow.after_seconds": 60.0,
			"ring_timeout_seconds": 20.0, "max_wait_seconds": 1800.0, "join_when_no_agents": true, "announce.position": true, "announce.every_seconds": 60.0,
			"callback.key": "5", "callback.max_attempts": 3.0, "required_skills.french": 3.0, "hours.weekly.mon.0.to": "17:30", "members_count": 0.0,
			"service_level_seconds": 20.0, "missed_offers_limit": 3.0, "recording_mode": "inherit"} {
			if a.At(path) != want {
				t.Errorf("%s is %v, want %v", path, a.At(path), want)
			}
		}
		b := h.do("PATCH", "/queues/"+id, `{"overflow":{"after_seconds":90},"ring_timeout_seconds":30,"hours":null,"extension":null,"strategy":null}`).Want(200)
		if b.Text("overflow.to") != "ext:100" || b.At("overflow.after_seconds") != 90.0 || b.At("hours") != nil || b.At("extension") != nil ||
			b.Text("strategy") != "longest_idle" || b.At("ring_timeout_seconds") != 30.0 || b.Text("callback.key") != "5" {
			t.Errorf("changed: %s", b.Bytes)
		}
		if c := h.do("GET", "/queues/"+id, nil).Want(200); c.Text("updated_at") != b.Text("updated_at") {
			t.Errorf("read again: %s", c.Bytes)
		}
	})
}

func TestQueue_ListsEveryViolation(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	h.do("POST", "/queues", `{"name":"","extension":"x","strategy":"lottery","ring_timeout_seconds":4,"max_wait_seconds":0,"music_audio_id":"aud_none",
		"whisper_audio_id":"aud_none","announce":{"audio_id":"aud_none","every_seconds":1},"overflow":{"to":"nobody"},"callback":{"key":"12"},
		"required_skills":{"french":11},"recording_mode":"maybe","hours":{"timezone":"Mars","weekly":{"mon":[{"from":"17:00","to":"09:00"},{"from":"x","to":"y"}],
		"tue":[{"from":"09:00","to":"12:00"},{"from":"11:00","to":"13:00"}]},"exceptions":[{"date":"soon"}]}}`).Want(422).
		Refused("validation_failed", "name invalid_length", "extension invalid_extension", "strategy invalid_value", "ring_timeout_seconds out_of_range",
			"max_wait_seconds out_of_range", "music_audio_id not_found", "whisper_audio_id not_found", "announce.audio_id not_found",
			"announce.every_seconds out_of_range", "overflow.to invalid_destination", "callback.key invalid_key", "required_skills.french invalid_skill",
			"recording_mode invalid_value", "hours.timezone invalid_timezone", "hours.weekly.mon[0] out_of_order", "hours.weekly.mon[1] invalid_time",
			"hours.weekly.tue overlapping", "hours.exceptions[0].date invalid_date", "hours.exceptions[0] ambiguous")
	if a := h.do("GET", "/queues", nil).Want(200); a.Has("data.0", "id") {
		t.Errorf("something was kept: %s", a.Bytes)
	}
}

func TestCreate_WithMembers(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		ada := h.do("POST", "/users", `{"email":"ada@example.com","first_name":"Ada"}`).Want(201).Text("id")
		id := h.addQueue(`,"members":[{"user_id":"` + ada + `","priority":2,"signed_in":false}]`)
		a := h.do("GET", "/queues/"+id+"/members", nil).Want(200)
		if a.Text("data.0.user_id") != ada || a.At("data.0.priority") != 2.0 || a.At("data.0.signed_in") != false || a.At("data.1") != nil {
			t.Errorf("%s", a.Bytes)
		}
		h.do("POST", "/queues", `{"name":"Sales","members":[{"user_id":"`+ada+`"},{"user_id":"usr_0","priority":11}]}`).Want(422).
			Refused("validation_failed", "members[1].user_id not_found", "members[1].priority out_of_range")
		h.do("POST", "/queues", `{"name":"Sales","members":[{"user_id":"`+ada+`"},{"user_id":"`+ada+`"}]}`).Want(409).Refused("already_exists")
		if a := h.do("GET", "/queues", nil).Want(200); a.At("data.1") != nil {
			t.Errorf("a refused queue was added: %s", a.Bytes)
		}
	})
}

func TestExtension_SharedByUsersAndQueues(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		ada := h.do("POST", "/users", `{"email":"ada@example.com","first_name":"Ada"}`).Want(201).Text("id") // gets 100
		h.do("POST", "/queues", `{"name":"Sales","extension":"100"}`).Want(409).Refused("extension_taken")
		id := h.addQueue(`,"extension":"101"`)
		if a := h.do("POST", "/users", `{"email":"bob@example.com","first_name":"Bob"}`).Want(201); a.Text("extension") != "102" {
			t.Errorf("the next free one is %s", a.Text("extension"))
		}
		h.do("PATCH", "/users/"+ada, `{"extension":"101"}`).Want(409).Refused("extension_taken")
		h.do("PATCH", "/queues/"+id, `{"extension":"100"}`).Want(409).Refused("extension_taken")
		h.do("PATCH", "/queues/"+id, `{"extension":"200"}`).Want(200)
		h.do("PATCH", "/users/"+ada, `{"extension":"101"}`).Want(200)
		h.do("DELETE", "/queues/"+id, nil).Want(204)
		h.do("PATCH", "/users/"+ada, `{"extension":"200"}`).Want(200)
		h.do("GET", "/queues/"+id, nil).Want(404)
	})
}

func TestExtension_OneOfConcurrentRequestsWins(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		got := make(chan int, 8)
		for i := range 8 {
			go func() {
				if i%2 == 0 {
					got <- h.do("POST", "/queues", `{"name":"Q","extension":"700"}`).Status
					return
				}
				got <- h.do("POST", "/users", fmt.Sprintf(`{"email":"u%d@example.com","first_name":"U","extension":"700"}`, i)).Status
			}()
		}
		made := 0
		for range 8 {
			switch s := <-got; s {
			case 201:
				made++
			case 409:
			default:
				t.Errorf("status %d", s)
			}
		}
		if made != 1 {
			t.Errorf("%d got the extension", made)
		}
	})
}

func TestQueueUpdate_KeepsMembersSignedIn(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id := h.addQueue("")
		ada := h.addAgent(t, "ada", id, `,"priority":2,"skills":{"french":4}`)
		bob := h.addAgent(t, "bob", id, `,"signed_in":false`)
		h.do("POST", "/queues/"+id+"/members", fmt.Sprintf(`{"user_id":%q}`, ada)).Want(409).Refused("already_exists")
		h.do("POST", "/queues/"+id+"/members", `{"user_id":"usr_none","priority":11,"skills":{"x":0}}`).Want(422).
			Refused("validation_failed", "user_id not_found", "priority out_of_range", "skills.x invalid_skill")
		h.do("PATCH", "/queues/"+id, `{"name":"Renamed","strategy":"random","max_callers":3}`).Want(200)
		a := h.do("GET", "/queues/"+id+"/members?signed_in=true", nil).Want(200)
		if a.Text("data.0.user_id") != ada || a.Has("data.1", "user_id") || a.At("data.0.priority") != 2.0 || a.Text("data.0.presence.status") != "available" {
			t.Errorf("members %s", a.Bytes)
		}
		h.do("PATCH", "/queues/"+id+"/members/"+ada, `{"paused":true,"pause_reason":"tea"}`).Want(200)
		if x := h.do("GET", "/queues/"+id+"/stats", nil).Want(200); x.At("agents_available") != 0.0 || x.At("agents.away") != 1.0 || x.At("agents.signed_in") != 1.0 {
			t.Errorf("stats %s", x.Bytes)
		}
		m := h.do("PUT", "/agents/"+ada+"/queues/"+id, `{"signed_in":true,"paused":false}`).Want(200)
		if m.At("paused") != false || m.At("pause_reason") != nil {
			t.Errorf("member %s", m.Bytes)
		}
		h.do("PUT", "/agents/"+bob+"/queues/"+id, `{"signed_in":true}`).Want(200)
		if x := h.do("GET", "/queues/"+id+"/stats", nil).Want(200); x.At("agents_available") != 2.0 {
			t.Errorf("stats %s", x.Bytes)
		}
		if g := h.do("GET", "/agents/"+ada, nil).Want(200); g.Text("queues.0.name") != "Renamed" || g.At("queues.0.signed_in") != true || g.At("queues.0.priority") != 2.0 {
			t.Errorf("agent %s", g.Bytes)
		}
		if u := h.do("GET", "/users/"+bob, nil).Want(200); u.Text("queue_ids.0") != id {
			t.Errorf("user %s", u.Bytes)
		}
		h.do("PATCH", "/users/"+bob, `{"queue_ids":["que_none"]}`).Want(422).Refused("validation_failed", "queue_ids not_found")
		h.do("PATCH", "/users/"+bob, `{"queue_ids":[]}`).Want(200)
		h.do("DELETE", "/queues/"+id+"/members/"+bob, nil).Want(404)
		h.do("DELETE", "/users/"+ada, nil).Want(204)
		if k := h.do("GET", "/queues/"+id, nil).Want(200); k.At("members_count") != 0.0 {
			t.Errorf("queue %s", k.Bytes)
		}
	})
}

func TestStrategies_OrderMembers(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id := h.addQueue("")
		h.addAgent(t, "ada", id, `,"priority":9,"skills":{"french":2}`)
		bob := h.addAgent(t, "bob", id, `,"priority":1,"skills":{"french":9}`)
		h.addAgent(t, "cem", id, `,"priority":5`)
		h.addAgent(t, "off", id, `,"signed_in":false`)
		first := h.enter(t, id)
		o := h.offer(t, first, bob)[0] // bob was rung, and answers one call
		h.tx(t, func(ctx context.Context, tx db.Querier) error {
			_, err := h.AnswerOffer(ctx, tx, h.org, o.ID)
			return err
		})
		h.tx(t, func(ctx context.Context, tx db.Querier) error {
			return h.CompleteEntry(ctx, tx, h.org, first.ID, time.Minute)
		})
		h.advance(time.Minute) // wrap-up is over
		if err := h.agents.Reconcile(h.ctx); err != nil {
			t.Fatal(err)
		}
		e := h.enter(t, id)
		for strategy, want := range map[string]string{"longest_idle": "ada cem bob", "round_robin": "ada cem bob", "fewest_calls": "ada cem bob",
			"priority": "bob cem ada"} {
			h.do("PATCH", "/queues/"+id, fmt.Sprintf(`{"strategy":%q}`, strategy)).Want(200)
			if got := h.candidates(t, e); got != want {
				t.Errorf("%s asks %q, want %q", strategy, got, want)
			}
		}
		h.do("PATCH", "/queues/"+id, `{"strategy":"skills","required_skills":{"french":1}}`).Want(200)
		if got := h.candidates(t, e); got != "bob ada" {
			t.Errorf("skills asks %q", got)
		}
	})
}

func TestStats_CountedFromEntries(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id := h.addQueue(`,"service_level_seconds":20,"short_abandon_seconds":5`)
		empty := h.do("GET", "/queues/"+id+"/stats", nil).Want(200)
		if empty.At("callers_waiting") != 0.0 || empty.At("today.answer_rate") != 0.0 || empty.At("estimated_wait_seconds") != nil {
			t.Errorf("empty: %s", empty.Bytes)
		}
		ada := h.addAgent(t, "ada", id, "")
		serve := func(wait, talk time.Duration) {
			e := h.enter(t, id)
			h.advance(wait)
			o := h.offer(t, e, ada)[0]
			h.tx(t, func(ctx context.Context, tx db.Querier) error {
				_, err := h.AnswerOffer(ctx, tx, h.org, o.ID)
				return err
			})
			h.tx(t, func(ctx context.Context, tx db.Querier) error { return h.CompleteEntry(ctx, tx, h.org, e.ID, talk) })
		}
		leave := func(wait time.Duration, status string) {
			e := h.enter(t, id)
			h.advance(wait)
			h.tx(t, func(ctx context.Context, tx db.Querier) error { return h.Leave(ctx, tx, h.org, e.ID, status, "") })
		}
		serve(10*time.Second, 100*time.Second)
		serve(30*time.Second, 200*time.Second)
		leave(60*time.Second, queue.Abandoned)
		leave(2*time.Second, queue.Abandoned) // short: not counted
		leave(90*time.Second, queue.Overflowed)
		h.enter(t, id)
		h.advance(7 * time.Second)
		a := h.do("GET", "/queues/"+id+"/stats", nil).Want(200)
		for path, want := range map[string]float64{"callers_waiting": 1, "agents_available": 1, "today.answered": 2, "today.abandoned": 1,
			"today.answer_rate": 67, "today.offered": 6, "today.overflowed": 1, "today.average_talk_seconds": 150, "average_wait_seconds": 20,
			"service_level_rate": 33, "longest_wait_seconds": 7, "estimated_wait_seconds": 320} {
			if a.At(path) != want {
				t.Errorf("%s is %v, want %v", path, a.At(path), want)
			}
		}
		if all := h.do("GET", "/queues/stats", nil).Want(200); all.Text("data.0.name") != "Support" || all.At("data.0.today.answered") != 2.0 {
			t.Errorf("all: %s", all.Bytes)
		}
		if l := h.do("GET", "/queues?include=stats&member_id="+ada, nil).Want(200); l.At("data.0.stats.callers_waiting") != 1.0 {
			t.Errorf("list: %s", l.Bytes)
		}
		m := h.do("GET", "/queues/"+id+"/members", nil).Want(200)
		if m.At("data.0.offered_today") != 2.0 || m.At("data.0.answered_today") != 2.0 || m.Text("data.0.last_call_ended_at") == "" {
			t.Errorf("member: %s", m.Bytes)
		}
		h.advance(13 * time.Hour)
		if a := h.do("GET", "/queues/"+id+"/stats", nil).Want(200); a.At("today.answered") != 0.0 || a.At("callers_waiting") != 1.0 {
			t.Errorf("the next day: %s", a.Bytes)
		}
	})
}

func TestMoveCall_ChangesPositionPriorityAndQueue(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id, other := h.addQueue(""), h.addQueue("")
		var calls []string
		for range 4 {
			calls = append(calls, h.enter(t, id).CallID)
		}
		order := func() string {
			var names []string
			a := h.do("GET", "/queues/"+id+"/calls", nil).Want(200)
			for i := range 4 {
				for n, c := range calls {
					if a.At(fmt.Sprintf("data.%d.call_id", i)) == c && a.At(fmt.Sprintf("data.%d.position", i)) == float64(i+1) {
						names = append(names, fmt.Sprint(n))
					}
				}
			}
			return strings.Join(names, "")
		}
		move := func(n int, body string) *optest.Answer {
			return h.do("PATCH", "/queues/"+id+"/calls/"+calls[n], body)
		}
		if got := order(); got != "0123" {
			t.Fatalf("order %s", got)
		}
		for _, c := range []struct{ n, to int }{{3, 1}, {0, 4}, {1, 2}, {2, 99}} {
			move(c.n, fmt.Sprintf(`{"position":%d}`, c.to)).Want(200)
		}
		if got := order(); got != "3102" {
			t.Errorf("order %s", got)
		}
		if a := move(0, `{"priority":5}`).Want(200); a.At("position") != 1.0 || order() != "0312" {
			t.Errorf("order %s: %s", order(), a.Bytes)
		}
		if a := move(3, `{"position":1}`).Want(200); a.At("priority") != 5.0 || order() != "3012" {
			t.Errorf("order %s: %s", order(), a.Bytes)
		}
		move(1, `{"position":0,"queue_id":"que_none"}`).Want(422).Refused("validation_failed", "position out_of_range", "queue_id not_found")
		if a := move(1, fmt.Sprintf(`{"queue_id":%q}`, other)).Want(200); a.Text("queue_id") != other || a.At("position") != 1.0 {
			t.Errorf("moved: %s", a.Bytes)
		}
		move(1, `{"position":1}`).Want(404)
		if a := h.do("GET", "/queues/"+id+"/calls?status=exited", nil).Want(200); a.Text("data.0.exit_reason") != "moved" {
			t.Errorf("where they were: %s", a.Bytes)
		}
		h.do("DELETE", "/queues/"+id+"/calls/"+calls[2]+"?to=overflow", nil).Want(422).Refused("validation_failed", "to no_overflow")
		h.do("DELETE", "/queues/"+id+"/calls/"+calls[2], nil).Want(204)
		if a := h.do("GET", "/queues/"+id+"/calls?status=removed", nil).Want(200); a.Text("data.0.exit_reason") != "hangup" || a.At("data.0.position") != 0.0 {
			t.Errorf("removed: %s", a.Bytes)
		}
		page := h.do("GET", "/queues/"+id+"/calls?limit=1&include_total=true", nil).Want(200)
		if page.At("total") != 2.0 || page.Text("data.0.call_id") != calls[3] {
			t.Errorf("page: %s", page.Bytes)
		}
		if page = h.do("GET", "/queues/"+id+"/calls?limit=1&cursor="+page.Text("next_cursor"), nil).Want(200); page.Text("data.0.call_id") != calls[0] {
			t.Errorf("next page: %s", page.Bytes)
		}
	})
}

func TestDeleteQueue_MovesReferences(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id, heir := h.addQueue(""), h.addQueue("")
		feeder := h.addQueue(fmt.Sprintf(`,"overflow":{"to":"queue:%s"}`, id))
		h.fake.used = id
		e := h.enter(t, id)
		a := h.do("DELETE", "/queues/"+id, nil).Want(409).Refused("in_use")
		if a.At("used_by.0") != "num_1" || a.At("used_by.1") != feeder || a.At("used_by.2") != e.CallID {
			t.Errorf("used by %s", a.Bytes)
		}
		h.do("DELETE", "/queues/"+id+"?move_to=que_none", nil).Want(422).Refused("validation_failed", "move_to not_found")
		h.do("DELETE", "/queues/"+id+"?move_to="+heir, nil).Want(204)
		if moved := h.fake.moved; moved != id+" "+heir {
			t.Errorf("numbers moved: %q", moved)
		}
		if a := h.do("GET", "/queues/"+feeder, nil).Want(200); a.Text("overflow.to") != "queue:"+heir {
			t.Errorf("overflow %s", a.Bytes)
		}
		if a := h.do("GET", "/queues/"+heir+"/calls", nil).Want(200); a.Text("data.0.call_id") != e.CallID {
			t.Errorf("callers %s", a.Bytes)
		}
	})
}

func TestQueues_OtherOrganisationNotFound(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	id := h.addQueue("")
	e := h.enter(t, id)
	other, err := org.New(h.d, bus.New(), h.now).Create(h.ctx, "Other", "GB")
	if err != nil {
		t.Fatal(err)
	}
	p := optest.Admin(other.ID)
	for _, c := range [][3]string{{"GET", "", ""}, {"PATCH", "", `{"name":"x"}`}, {"DELETE", "", ""}, {"GET", "/stats", ""}, {"GET", "/members", ""},
		{"POST", "/members", `{"user_id":"x"}`}, {"GET", "/calls", ""}, {"PATCH", "/calls/" + e.CallID, `{"position":1}`}, {"DELETE", "/calls/" + e.CallID, ""}} {
		var body any
		if c[2] != "" {
			body = c[2]
		}
		h.server.Do(p, c[0], "/queues/"+id+c[1], body).Want(404)
	}
	if a := h.server.Do(p, "GET", "/queues/stats", nil).Want(200); a.Has("data.0", "queue_id") {
		t.Errorf("stats of others: %s", a.Bytes)
	}
}
