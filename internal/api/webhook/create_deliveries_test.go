package webhook

import (
	"context"
	"fmt"
	"testing"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
	"soniq/internal/platform/op/optest"
	"soniq/internal/platform/visibility/visibilitytest"
)

// deliveredKinds returns the kinds of an endpoint's deliveries.
func (h *fixture) deliveredKinds(id string) string {
	var all []string
	for _, d := range h.deliveries(id) {
		all = append(all, d.Kind)
	}
	return fmt.Sprint(all)
}

func TestCreateDeliveries_SubscribedKinds(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d, nil)
		all, _ := h.create("https://example.com/", nil)
		two, _ := h.create("https://example.com/", map[string]any{"events": []string{"call.missed", "user.created"}})
		none, _ := h.create("https://example.com/", map[string]any{"events": []string{"sms.sent"}})
		stranger := newOrg(t, d)
		h.publish(event.CallMissed{CallID: "call_1"}, event.CallRecording{CallID: "call_1"}, event.UserCreated{})
		own := h.org
		h.org = stranger
		h.publish(event.CallMissed{CallID: "call_other"})
		h.org = own
		h.readOnce()
		for id, want := range map[string]string{all: "[call.missed call.recording user.created]", two: "[call.missed user.created]", none: "[]"} {
			if got := h.deliveredKinds(id); got != want {
				t.Errorf("told %s, want %s", got, want)
			}
		}
	})
}

// readOnce numbers the published events and creates their deliveries.
func (h *fixture) readOnce() {
	h.t.Helper()
	if _, err := h.reader.Once(context.Background()); err != nil {
		h.t.Fatal(err)
	}
}

func TestCreateDeliveries_CallEndedOnce(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t), nil)
	early, _ := h.create("https://example.com/", map[string]any{"call_ended_timing": "immediate"})
	late, _ := h.create("https://example.com/", nil)
	err := h.cfg.DB.Tx(context.Background(), func(tx db.Querier) error {
		ctx := context.Background()
		if err := h.outbox.PublishTo(ctx, tx, h.org, event.AudienceImmediate, event.CallEnded{CallID: "call_1"}); err != nil {
			return err
		}
		return h.outbox.PublishTo(ctx, tx, h.org, event.AudienceEnriched, event.CallEnded{CallID: "call_1", Enriched: true})
	})
	if err != nil {
		t.Fatal(err)
	}
	h.readOnce()
	if a, b := h.deliveries(early), h.deliveries(late); len(a) != 1 || len(b) != 1 || a[0].Sequence != 1 || b[0].Sequence != 2 {
		t.Errorf("early %v, late %v", a, b)
	}
}

func TestFilters_WholeCall(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d, nil)
		ids := map[string]string{}
		for name, f := range map[string]map[string]any{
			"number":    {"number_ids": []string{"num_1"}},
			"user":      {"user_ids": []string{"usr_1", "usr_2"}},
			"queue":     {"queue_ids": []string{"que_1"}},
			"inbound":   {"direction": "inbound"},
			"both":      {"direction": "inbound", "user_ids": []string{"usr_1"}},
			"elsewhere": {"number_ids": []string{"num_9"}},
		} {
			ids[name], _ = h.create("https://example.com/", map[string]any{"filters": f})
		}
		h.publish(
			event.CallStarted{CallID: "call_1", Direction: "inbound", NumberID: ptrTo("num_1")},
			event.CallAnswered{CallID: "call_1", Direction: "inbound", AgentID: ptrTo("usr_1")},
			event.CallRecording{CallID: "call_1"},
			event.CallStarted{CallID: "call_2", Direction: "outbound", UserID: ptrTo("usr_2")},
			event.UserCreated{UserID: "usr_3"},
			event.NumberAllocated{NumberID: "num_1"})
		h.readOnce()
		for name, want := range map[string]string{
			"number":    "[call.started call.answered call.recording user.created number.allocated]",
			"user":      "[call.started call.answered call.recording call.started number.allocated]",
			"queue":     "[user.created number.allocated]",
			"inbound":   "[call.started call.answered call.recording user.created number.allocated]",
			"both":      "[call.started call.answered call.recording number.allocated]",
			"elsewhere": "[user.created]",
		} {
			if got := h.deliveredKinds(ids[name]); got != want {
				t.Errorf("%s: told %s, want %s", name, got, want)
			}
		}
	})
}

// The events of a call that matches a filter late are delivered from the first on, in order and once.
func TestFilters_LateMatchDeliversEarlierEvents(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d, nil)
		h.publish(event.CallMissed{CallID: "call_1"}) // before the webhook
		h.readOnce()
		id, _ := h.create("https://example.com/", map[string]any{"filters": map[string]any{"user_ids": []string{"usr_1"}}})
		h.publish(event.CallStarted{CallID: "call_1", Direction: "inbound"}, event.CallStarted{CallID: "call_2", Direction: "inbound"})
		h.readOnce()
		h.publish(event.QueueCallWaiting{CallID: "call_1", QueueID: "que_1"})
		h.readOnce()
		if got := h.deliveredKinds(id); got != "[]" {
			t.Errorf("told %s before it was known whose call it is", got)
		}
		h.publish(event.CallAnswered{CallID: "call_1", AgentID: ptrTo("usr_1")}, event.CallRecording{CallID: "call_1"})
		h.readOnce()
		h.publish(event.CallEnded{CallID: "call_1"}, event.CallMissed{CallID: "call_2"})
		h.readOnce()
		if got := h.deliveredKinds(id); got != "[call.started queue.call_waiting call.answered call.recording call.ended]" {
			t.Errorf("told %s", got)
		}
	})
}

// Filters apply to every kind that has a queue, number, user or direction.
func TestFilters_EveryKind(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d, nil)
		ids := map[string]string{}
		for name, f := range map[string]map[string]any{
			"number": {"number_ids": []string{"num_1"}}, "user": {"user_ids": []string{"usr_1"}}, "queue": {"queue_ids": []string{"que_1"}},
			"inbound": {"direction": "inbound"}, "outbound": {"direction": "outbound"},
		} {
			ids[name], _ = h.create("https://example.com/", map[string]any{"filters": f})
		}
		for _, p := range []event.Payload{
			event.CallRinging{CallID: "call_rung", UserID: ptrTo("usr_1")}, // not sent to webhooks, but it names the user whose phone rang
			event.CallMissed{CallID: "call_rung"},
			event.CallMissed{CallID: "call_2", QueueID: ptrTo("que_1")},
			event.QueueCallWaiting{CallID: "call_3", QueueID: "que_1"},
			event.VoicemailReceived{CallID: "call_4", Mailbox: event.Mailbox{Type: "user", ID: "usr_1"}},
			event.VoicemailReceived{CallID: "call_5", Mailbox: event.Mailbox{Type: "queue", ID: "que_1"}},
			event.SMSReceived{FromNumber: "+12025550199", ToNumber: "+12025550143"},
			event.SMSSent{FromNumber: "+12025550143", ToNumber: "+12025550199", UserID: ptrTo("usr_1")},
			event.SMSReceived{FromNumber: "+12025550199", ToNumber: "+12025550144"},
			event.NumberAllocated{NumberID: "num_2", AssignedTo: event.Assignment{Type: "queue", ID: ptrTo("que_1")}},
		} {
			h.publish(p)
			h.readOnce()
		}
		for name, want := range map[string]string{
			"number":   "[sms.received sms.sent]",
			"user":     "[call.missed voicemail.received sms.received sms.sent sms.received number.allocated]",
			"queue":    "[call.missed queue.call_waiting voicemail.received sms.received sms.sent sms.received number.allocated]",
			"inbound":  "[sms.received sms.received number.allocated]",
			"outbound": "[sms.sent number.allocated]",
		} {
			if got := h.deliveredKinds(ids[name]); got != want {
				t.Errorf("%s: told %s, want %s", name, got, want)
			}
		}
	})
}

func TestCreateDeliveries_SignedRecordingURLs(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t), nil)
	with, _ := h.create("https://example.com/", map[string]any{"signed_recording_urls": true})
	without, _ := h.create("https://example.com/", nil)
	h.publish(event.CallRecording{CallID: "call_1", RecordingURL: ptrTo("https://soniq.example/a<b")}, event.CallRecording{CallID: "call_1"})
	h.readOnce()
	plain, _ := event.Encode(event.CallRecording{CallID: "call_1", RecordingURL: ptrTo("https://soniq.example/a<b")})
	signed, _ := event.Encode(event.CallRecording{CallID: "call_1", RecordingURL: ptrTo("https://soniq.example/a<b?signature=for-" + h.org + "-by-key_test")})
	if got := h.deliveries(with); got[0].Body != string(signed) {
		t.Errorf("with: %s", got[0].Body)
	}
	if got := h.deliveries(without); got[0].Body != string(plain) {
		t.Errorf("without: %s", got[0].Body)
	}
}

func TestCreateDeliveries_NoCostWithoutEndpoints(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t), nil)
	h.publish(numberedEvents("call_1", 3)...)
	h.readOnce()
	var n int
	if err := h.cfg.DB.Read(context.Background()).QueryRow(context.Background(), `SELECT (SELECT count(*) FROM jobs) + (SELECT count(*) FROM webhook_deliveries)`).Scan(&n); err != nil || n != 0 {
		t.Errorf("%d rows, %v", n, err)
	}
}

// TestCreateDeliveries_CallsOfTheMaker publishes events of two calls to a webhook of a user. The webhook of an owner gets the events of
// both calls. The webhook of an agent gets all events of the agent's call, those before the agent joined included, and events without a
// call.
func TestCreateDeliveries_CallsOfTheMaker(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d, nil)
		o := visibilitytest.Org{T: t, DB: d, ID: h.org}
		o.User("usr_1", "owner")
		o.Call("call_own")
		o.Call("call_other")
		id, _ := h.create("https://example.com/", nil)
		o.Exec(`UPDATE webhooks SET user_id = 'usr_1' WHERE org_id = $1`)
		o.Exec(`UPDATE webhook_versions SET version = 'v_2' WHERE org_id = $1`)
		h.publish(event.CallMissed{CallID: "call_other"})
		h.readOnce()
		if got := h.deliveredKinds(id); got != "[call.missed]" {
			t.Fatalf("the owner was told %s", got)
		}
		o.SetRole("usr_1", "agent")
		h.publish(event.CallStarted{CallID: "call_other"}, event.CallStarted{CallID: "call_own"}, event.UserCreated{})
		h.readOnce()
		if got := h.deliveredKinds(id); got != "[call.missed user.created]" {
			t.Errorf("before any part in a call, the agent was told %s", got)
		}
		o.Leg("call_own", "usr_1")
		h.publish(event.CallAnswered{CallID: "call_own"}, event.CallAnswered{CallID: "call_other"})
		h.readOnce()
		if got := h.deliveredKinds(id); got != "[call.missed call.started user.created call.answered]" {
			t.Errorf("after the agent's phone rang, the agent was told %s", got)
		}
		gone, err := h.discardUnseen(context.Background(), &endpoint{Org: h.org, ID: id, User: "usr_1"}, h.deliveries(id)[0])
		if err != nil || !gone || h.deliveries(id)[0].Status != discarded {
			t.Errorf("a delivery that waits is sent to somebody who does not see its call any more: %v %v", gone, err)
		}
	})
}

func TestWebhooks_KnowTheirMaker(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t), nil)
	visibilitytest.Org{T: t, DB: h.cfg.DB, ID: h.org}.User("usr_1", "owner")
	p := optest.Admin(h.org)
	p.UserID = "usr_1"
	id := h.api.Do(p, "POST", "/webhooks", map[string]any{"url": "https://example.com/", "events": []string{"*"}}).Want(201).Text("id")
	if e, err := getEndpoint(context.Background(), h.cfg.DB.Read(context.Background()), h.org, id); err != nil || e.User != "usr_1" {
		t.Errorf("the webhook is of %q, %v", e.User, err)
	}
}
