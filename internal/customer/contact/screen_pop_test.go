package contact_test

import (
	"strings"
	"testing"
	"time"

	"soniq/internal/customer/contact"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
	"soniq/internal/telephony/call"
)

func TestScreenPop_SecondWhenSystemLate(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	told := h.bus.Subscribe(event.Stream, 10)
	known := make(identificationRecorder, 1)
	h.Observe(known)
	release := make(chan struct{})
	h.connect(900, source("slow", 1, hanging(release, contact.Record{ExternalID: "1", Name: "Slow", Phones: []string{"+442079460018"}})))
	limits := h.noWait()
	h.Ringing(contact.Ring{Org: h.org, CallID: "call_1", UserID: "usr_1", Phone: "+442079460018"})
	first := (<-told.C).(event.Event)
	if got := limits(); len(got) != 1 || got[0] != 200*time.Millisecond {
		t.Errorf("the first waits for systems for %v", got)
	}
	if !strings.Contains(first.Body, `"complete":false`) || !strings.Contains(first.Body, `"contact":null`) || !strings.Contains(first.Body, `"user_id":"usr_1"`) {
		t.Errorf("first %s", first.Body)
	}
	close(release)
	second := (<-told.C).(event.Event)
	if !strings.Contains(second.Body, `"complete":true`) || !strings.Contains(second.Body, `"name":"Slow"`) {
		t.Errorf("second %s", second.Body)
	}
	if got := <-known; got != "call_1 Slow" {
		t.Errorf("known %q", got)
	}
	h.Ringing(contact.Ring{Org: h.org, CallID: "call_2", UserID: "usr_1", Phone: "anonymous"})
	if e := (<-told.C).(event.Event); !strings.Contains(e.Body, `"complete":true`) || !strings.Contains(e.Body, `"phone":"anonymous"`) {
		t.Errorf("withheld %s", e.Body)
	}
}

// A call to a direct number has no queue, and the database is not queried for one.
func TestScreenPop_Queue(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	told := h.bus.Subscribe(event.Stream, 10)
	h.fakes.queue = &call.Named{ID: "que_1", Name: "Sales"}
	for straight, want := range map[bool]string{false: `{"id":"que_1","name":"Sales"}`, true: "null"} {
		h.Ringing(contact.Ring{Org: h.org, CallID: "call_1", UserID: "usr_1", Phone: "+442079460018", Direct: straight})
		if e := (<-told.C).(event.Event); !strings.Contains(e.Body, `"queue":`+want) {
			t.Errorf("%s, want the queue %s", e.Body, want)
		}
	}
}

func TestScreenPop_UnknownCaller(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	h.do("POST", "/contacts", `{"first_name":"Ada","vip":true,"tags":["gold"],"phones":[{"number":"+442079460018"}]}`).Want(201)
	h.fakes.history = contact.CallHistory{CallsTotal: 3, OpenItems: []string{"call back"}}
	a := h.do("GET", "/contacts/screen-pop?phone=%2B442079460018", nil).Want(200)
	if a.Text("contact.name") != "Ada" || a.At("vip") != true || a.Text("tags.0") != "gold" || a.At("calls_total") != float64(3) ||
		a.Text("open_items.0") != "call back" || !h.fakes.memoryRead {
		t.Errorf("got %s", a.Bytes)
	}
	if a := h.do("GET", "/contacts/screen-pop?phone=anonymous", nil).Want(200); a.At("contact") != nil || a.At("complete") != true || a.Text("phone") != "anonymous" {
		t.Errorf("withheld: %s", a.Bytes)
	}
	h.do("GET", "/contacts/screen-pop", nil).Refused("validation_failed", "phone required")
}
