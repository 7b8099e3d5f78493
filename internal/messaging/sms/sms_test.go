package sms_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/internal/messaging/sms"
	"soniq/internal/platform/access"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op/optest"
	"soniq/internal/sandbox/sandbox"
)

const own, silent, mobile = "+12025550143", "+12025550144", "+12025550199"

// fixture has a message service with one organisation that has a number, and a second organisation.
type fixture struct {
	*sms.Service
	fake   *fakeDependencies
	t      *testing.T
	db     *db.DB
	server *optest.Server
	jobs   *job.Queue
	runner *job.Runner
}

func newFixture(t *testing.T, d *db.DB) *fixture {
	t.Helper()
	b := bus.New()
	now := time.Now
	f := &fakeDependencies{carrier: "sandbox"}
	k := &fixture{t: t, db: d, fake: f, jobs: &job.Queue{Bus: b, Clock: clock.Func(now)}}
	k.Service = sms.New(sms.Config{DB: d, Outbox: &event.Outbox{DB: d, Bus: b, Clock: clock.Func(now)},
		Jobs: k.jobs, Log: slog.New(slog.DiscardHandler), Digester: f,
		Numbers: f, Router: f, Users: f, Carriers: f, Contacts: f, Phones: f, Redactions: f})
	k.BuiltIn["sandbox"] = sandbox.SMSCarrier{}
	k.server = optest.New(t, d, append(k.Operations(), newSandbox(d, k.Service).Operations()...)...)
	for _, org := range []string{"org_a", "org_b"} {
		k.exec(`INSERT INTO orgs (id, path, environment, name, plan, status, country, timezone, language, settings, created_at, updated_at)
			VALUES ($1, $1, 'test', $1, 'free', 'active', 'US', 'UTC', 'en', '{}', 0, 0)`, org)
	}
	return k
}

// startJobs starts the workers of the message queue.
func (k *fixture) startJobs() {
	k.t.Helper()
	k.runner = &job.Runner{DB: k.db, Queue: k.jobs, Name: sms.Queue, Node: "n1", Log: slog.New(slog.DiscardHandler),
		Options: job.Options{Workers: 4, Timeout: time.Minute}}
	k.Handle(k.runner)
	if err := k.runner.Start(context.Background()); err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() { k.runner.Stop(context.Background()) })
}

func (k *fixture) exec(q string, args ...any) {
	k.t.Helper()
	err := k.db.Tx(context.Background(), func(tx db.Querier) error { _, err := tx.Exec(context.Background(), q, args...); return err })
	if err != nil {
		k.t.Fatal(err)
	}
}

func (k *fixture) request(method, path string, body any) *optest.Answer {
	k.t.Helper()
	p := optest.Admin("org_a")
	p.Environment = access.Sandbox
	return k.server.Do(p, method, path, body)
}

func (k *fixture) sendMessage(to, body string) string {
	k.t.Helper()
	return k.request("POST", "/sms", map[string]any{"from": own, "to": to, "body": body}).Want(201).Text("id")
}

// waitStatus waits until a message has a status.
func (k *fixture) waitStatus(id, status string) *optest.Answer {
	k.t.Helper()
	return k.poll("/sms/"+id, status, func(a *optest.Answer) bool { return a.Text("status") == status })
}

// waitNotEmpty waits until a list has an entry.
func (k *fixture) waitNotEmpty(list string) *optest.Answer {
	k.t.Helper()
	return k.poll(list, "there", func(a *optest.Answer) bool { return a.Text("data.0.id") != "" })
}

// poll repeats a request until the condition holds.
func (k *fixture) poll(target, want string, is func(*optest.Answer) bool) *optest.Answer {
	k.t.Helper()
	late := time.After(2 * time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		a := k.request("GET", target, nil).Want(200)
		if is(a) {
			return a
		}
		select {
		case <-tick.C:
		case <-late:
			k.t.Fatalf("%s is not %s: %s", target, want, a.Bytes)
		}
	}
}

// eventKinds returns the kinds of the published events that contain a text, in order.
func (k *fixture) eventKinds(text string) (kinds []string) {
	k.t.Helper()
	rows, err := k.db.Read(context.Background()).Query(context.Background(),
		`SELECT kind FROM events WHERE org_id = $1 AND body LIKE $2 ORDER BY id`, "org_a", "%"+text+"%")
	if err != nil {
		k.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var kind string
		if err := rows.Scan(&kind); err != nil {
			k.t.Fatal(err)
		}
		kinds = append(kinds, kind)
	}
	return kinds
}

func TestSandbox_TestNumbers(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := newFixture(t, d)
		k.startJobs()
		for to, want := range map[string][2]string{"+12025550111": {"delivered", ""}, "+12025550112": {"undelivered", "unreachable"},
			"+12025550113": {"failed", "carrier_rejected"}, "+12025550115": {"delivered", ""}} {
			a := k.waitStatus(k.sendMessage(to, "hello"), want[0])
			if code := a.Text("error.code"); want[1] != code && !(want[1] == "" && a.At("error") == nil) {
				t.Errorf("%s: error %q", to, code)
			}
			if told := k.eventKinds(to + `"`); (len(told) > 0 && told[0] == "sms.sent") != (want[0] != "failed") {
				t.Errorf("%s: told %v", to, told)
			}
		}
		// it is stored after the message is reported as delivered
		reply := k.waitNotEmpty("/sms?direction=inbound&from_number=%2B12025550115")
		if reply.Text("data.0.body") != "hello" || reply.Text("data.0.status") != "received" {
			t.Errorf("reply: %s", reply.Bytes)
		}
	})
}

func TestCreate_AllViolationsListed(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := newFixture(t, d)
		k.request("POST", "/sms", map[string]any{"from": "+12025550150", "to": "", "body": strings.Repeat("x", 1601), "media_urls": []string{"ftp://x/y"},
			"send_at": time.Now().Add(36 * 24 * time.Hour).Format(time.RFC3339), "metadata": map[string]string{"": "x"}}).
			Refused("validation_failed", "body invalid_length", "media_urls invalid_url", "metadata. too_long", "send_at out_of_range",
				"from number_not_owned", "to required")
		k.request("POST", "/sms", map[string]any{"from": silent, "to": mobile, "body": "x"}).Refused("validation_failed", "from sms_not_enabled")
		k.request("POST", "/sms", map[string]any{"from": own, "to": "ext:1", "body": "x"}).Refused("destination_not_allowed")
		if n := len(k.request("GET", "/sms", nil).Want(200).At("data").([]any)); n != 0 {
			t.Errorf("%d messages were written", n)
		}
	})
}

func TestOptOut_BlocksQueuedAndNewMessages(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := newFixture(t, d)
		queued := k.sendMessage(mobile, "one more")
		in := func(body string) {
			t.Helper()
			k.request("POST", "/sandbox/sms/inbound", map[string]any{"from": mobile, "to": own, "body": body}).Want(201)
		}
		in(" stop. ")
		in("STOP")
		k.request("POST", "/sms", map[string]any{"from": own, "to": mobile, "body": "x"}).Want(422).Refused("opted_out")
		k.startJobs()
		if code := k.waitStatus(queued, "failed").Text("error.code"); code != "opted_out" {
			t.Errorf("error %q", code)
		}
		if thread := k.request("GET", "/sms/conversations", nil).Want(200); thread.At("data.0.opted_out") != true || thread.At("data.0.unread_count") != 2.0 {
			t.Errorf("conversation: %s", thread.Bytes)
		}
		answers := k.request("GET", "/sms?direction=outbound&sort=created_at", nil).Want(200)
		if n := len(answers.At("data").([]any)); n != 2 || !strings.Contains(answers.Text("data.1.body"), "unsubscribed") {
			t.Errorf("answers: %s", answers.Bytes)
		}
		k.waitStatus(answers.Text("data.1.id"), "delivered")
		k.request("GET", "/sms/opt-outs", nil).Want(200).Text("data.0.keyword")
		in("start")
		k.waitStatus(k.sendMessage(mobile, "welcome back"), "delivered")
	})
}

func TestOptOut_API(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := newFixture(t, d)
		k.request("POST", "/sms/opt-outs", map[string]any{"phone": mobile}).Want(201)
		k.request("POST", "/sms/opt-outs", map[string]any{"phone": mobile}).Want(409).Refused("already_exists")
		k.request("POST", "/sms/opt-outs", map[string]any{"phone": "x", "number_id": "num_9"}).Refused("validation_failed", "phone invalid_e164", "number_id not_found")
		k.request("POST", "/sms", map[string]any{"from": own, "to": mobile, "body": "x"}).Refused("opted_out")
		k.request("DELETE", "/sms/opt-outs/"+mobile, nil).Want(204)
		k.request("DELETE", "/sms/opt-outs/"+mobile, nil).Want(404)
		k.sendMessage(mobile, "x")
	})
}

func TestSchedule_WaitsAndCancels(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := newFixture(t, d)
		k.startJobs()
		later := func(body string) string {
			return k.request("POST", "/sms", map[string]any{"from": own, "to": mobile, "body": body, "send_at": time.Now().Add(time.Hour).Format(time.RFC3339)}).Want(201).Text("id")
		}
		one, two := later("canceled"), later("sent")
		k.request("POST", "/sms/"+one+"/cancel", nil).Want(200)
		k.request("POST", "/sms/"+one+"/cancel", nil).Want(200)
		k.exec(`UPDATE jobs SET run_at = 0 WHERE org_id = $1 AND kind = 'sms.due'`, "org_a")
		k.sendMessage(mobile, "wakes the queue")
		k.waitStatus(two, "delivered")
		k.waitStatus(one, "canceled")
		for id, want := range map[string]string{one: "sms.status sms.status", two: "sms.status sms.status sms.sent sms.status"} {
			if told := strings.Join(k.eventKinds(id), " "); told != want {
				t.Errorf("events of a scheduled message: %s, want %s", told, want)
			}
		}
		k.request("POST", "/sms/"+two+"/cancel", nil).Want(409).Refused("invalid_state")
	})
}

func TestConversation_ListPatchAndTenant(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := newFixture(t, d)
		first := k.sendMessage(mobile, "first")
		k.request("POST", "/sandbox/sms/inbound", map[string]any{"from": mobile, "to": own, "body": "second"}).Want(201)
		third := k.sendMessage(mobile, "third")
		k.sendMessage("+12025550198", "to another")
		all := k.request("GET", "/sms/conversations?unread=true", nil).Want(200)
		id := all.Text("data.0.id")
		if len(all.At("data").([]any)) != 1 || all.Text("data.0.last_message.body") != "third" || all.Text("data.0.org_number") != own {
			t.Fatalf("conversations: %s", all.Bytes)
		}
		bodies := func(query string) (got []string) {
			for _, m := range k.request("GET", "/sms/conversations/"+id+"/messages"+query, nil).Want(200).At("data").([]any) {
				got = append(got, m.(map[string]any)["body"].(string))
			}
			return got
		}
		for query, want := range map[string]string{"": "third second first", "?before=" + third: "second first", "?after=" + first: "second third", "?limit=1": "third"} {
			if got := strings.Join(bodies(query), " "); got != want {
				t.Errorf("messages%s: %s", query, got)
			}
		}
		changed := k.request("PATCH", "/sms/conversations/"+id, map[string]any{"status": "closed", "assignee_id": "usr_1", "read": true, "tags": []string{"vip", "vip"}}).Want(200)
		if changed.At("unread_count") != 0.0 || changed.Text("status") != "closed" || len(changed.At("tags").([]any)) != 1 {
			t.Errorf("changed: %s", changed.Bytes)
		}
		if told := k.eventKinds(`"conversation_id":"` + id + `","status":"closed","assignee_id":"usr_1","unread_count":0`); len(told) != 1 ||
			told[0] != "conversation.updated" {
			t.Errorf("told of the change: %v", told)
		}
		k.request("PATCH", "/sms/conversations/"+id, map[string]any{"status": "gone", "assignee_id": "usr_9", "tags": []string{""}}).
			Refused("validation_failed", "status invalid_value", "assignee_id not_found", "tags invalid_length")
		k.request("POST", "/sandbox/sms/inbound", map[string]any{"from": mobile, "to": own, "body": "again"}).Want(201)
		if a := k.request("GET", "/sms/conversations/"+id, nil).Want(200); a.Text("status") != "open" || a.At("unread_count") != 1.0 {
			t.Errorf("after a message came in: %s", a.Bytes)
		}
		for _, path := range []string{"/sms/" + first, "/sms/conversations/" + id, "/sms/conversations/" + id + "/messages"} {
			k.server.Do(optest.Admin("org_b"), "GET", path, nil).Want(404)
		}
	})
}

// fakeCarrier is a carrier that keeps its state over a simulated crash of the server.
type fakeCarrier struct {
	mu       sync.Mutex
	sent     []string
	sendErrs []error // errors of the next calls of Send
	queryErr error
}

func (p *fakeCarrier) Send(_ context.Context, o sms.Outgoing) (sms.Result, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.sendErrs) > 0 {
		err := p.sendErrs[0]
		p.sendErrs = p.sendErrs[1:]
		if errors.Is(err, sms.ErrUnsent) {
			return sms.Result{}, err
		}
		p.sent = append(p.sent, o.Reference)
		return sms.Result{}, err
	}
	p.sent = append(p.sent, o.Reference)
	return sms.Result{Status: sms.Delivered}, nil
}

func (p *fakeCarrier) QueryStatus(_ context.Context, o sms.Outgoing) (sms.Result, error) {
	return sms.Result{Status: sms.Delivered}, p.queryErr
}

func TestSend_NeverTwice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		asked        error
		cut          bool // the process died during Send
		fails        []error
		status, code string
		sendings     int
	}{
		"cut off, and the carrier knows":          {nil, true, nil, "delivered", "", 0},
		"cut off, and the carrier has none":       {sms.ErrUnsent, true, nil, "delivered", "", 1},
		"cut off, and nobody knows":               {sms.ErrOutcomeUnknown, true, nil, "failed", "unknown", 0},
		"the answer was lost, and nobody knows":   {sms.ErrOutcomeUnknown, false, []error{errors.New("lost")}, "failed", "unknown", 1},
		"nothing left at first":                   {sms.ErrOutcomeUnknown, false, []error{sms.ErrUnsent}, "delivered", "", 1},
		"the answer was lost, the carrier has it": {nil, false, []error{errors.New("lost")}, "delivered", "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				k, p := newFixture(t, d), &fakeCarrier{queryErr: c.asked, sendErrs: c.fails}
				k.BuiltIn["sandbox"] = p
				id := k.sendMessage(mobile, "once")
				if c.cut {
					k.exec(`UPDATE messages SET status = 'sending', reference = id WHERE org_id = $1`, "org_a")
				}
				k.startJobs()
				a := k.waitStatus(id, c.status)
				if c.code != "" && a.Text("error.code") != c.code {
					t.Errorf("error %s", a.Bytes)
				}
				if len(p.sent) != c.sendings {
					t.Errorf("sent %d times", len(p.sent))
				}
			})
		})
	}
}

func TestSend_PacedAndInOrder(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := newFixture(t, d)
		p := &fakeCarrier{}
		k.BuiltIn["sandbox"] = p
		began := time.Now()
		ids := []string{k.sendMessage(mobile, "1"), k.sendMessage(mobile, "2"), k.sendMessage(mobile, "3")}
		k.startJobs()
		k.waitStatus(ids[2], "delivered")
		if took := time.Since(began); took < 1900*time.Millisecond {
			t.Errorf("three messages left within %s", took)
		}
		if !slices.Equal(p.sent, ids) {
			t.Errorf("sent %v, not %v", p.sent, ids)
		}
	})
}

func TestErase_KeepsOptOut(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k, ctx := newFixture(t, d), context.Background()
		k.sendMessage(mobile, "secret")
		k.request("POST", "/sandbox/sms/inbound", map[string]any{"from": mobile, "to": own, "body": "STOP"}).Want(201)
		k.sendMessage("+12025550198", "stays")
		if n, err := k.CountForNumber(ctx, d.Read(ctx), "org_a", mobile); err != nil || n != 4 {
			t.Errorf("%d things, %v", n, err)
		}
		for n := 1; n > 0; {
			err := d.Tx(ctx, func(tx db.Querier) (err error) { n, err = k.EraseForNumber(ctx, tx, "org_a", mobile); return err })
			if err != nil {
				t.Fatal(err)
			}
		}
		if all := string(k.request("GET", "/sms", nil).Bytes) + string(k.request("GET", "/sms/conversations", nil).Bytes) + string(k.request("GET", "/sms/opt-outs", nil).Bytes); strings.Contains(all, mobile) ||
			!strings.Contains(all, "stays") {
			t.Errorf("left: %s", all)
		}
		k.request("POST", "/sms", map[string]any{"from": own, "to": mobile, "body": "x"}).Refused("opted_out")
	})
}
