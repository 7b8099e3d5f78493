package browser

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
)

// textCarrier is a carrier of text messages with an HTTP API, which accepts each message and posts receipts and messages.
type textCarrier struct {
	*httptest.Server
	t        *testing.T
	callback string

	mu   sync.Mutex // guards sent
	sent []sentText // in order
}

// sentText is a message that the carrier accepted.
type sentText struct{ ID, To, Text string }

// newTextCarrier connects a carrier with an organisation, and adds a number for messages.
func newTextCarrier(t *testing.T, office *fixture.Org, trunk, number string) *textCarrier {
	t.Helper()
	v := &textCarrier{t: t}
	v.Server = httptest.NewServer(http.HandlerFunc(v.accept))
	t.Cleanup(v.Close)
	office.Want(201, "POST", "/numbers", map[string]any{"number": number, "trunk_id": trunk, "sms_enabled": true, "label": "Reception"}, nil)
	var made struct {
		CallbackURL string `json:"callback_url"`
	}
	office.Want(201, "POST", "/sms/carriers", map[string]any{"provider": "http", "name": "Carrier", "rate_per_second": 100, "number_rate_per_second": 100,
		"settings": map[string]any{
			"send": map[string]any{"url": v.URL, "json": map[string]any{"to": "{{to}}", "text": "{{text}}"}}, "id": "id",
			"callback": map[string]any{"header": "X-Secret", "secret": "open sesame", "items": "events[*]",
				"receipt": map[string]any{"id": "id", "status": "state", "error": "code", "delivered": []string{"done"}, "undelivered": []string{"lost"}},
				"message": map[string]any{"id": "mid", "from": "from", "to": "to", "text": "text"}}}}, &made)
	v.callback = made.CallbackURL
	return v
}

// accept accepts a message.
func (v *textCarrier) accept(w http.ResponseWriter, r *http.Request) {
	var m sentText
	_ = json.NewDecoder(r.Body).Decode(&m)
	v.mu.Lock()
	defer v.mu.Unlock()
	m.ID = fmt.Sprint("m", len(v.sent)+1)
	v.sent = append(v.sent, m)
	_ = json.NewEncoder(w).Encode(map[string]string{"id": m.ID})
}

// wait waits for the n-th message.
func (v *textCarrier) wait(n int) (m sentText) {
	v.t.Helper()
	until(v.t, fmt.Sprintf("message %d at the carrier", n), pageTime, func() bool {
		v.mu.Lock()
		defer v.mu.Unlock()
		if len(v.sent) >= n {
			m = v.sent[n-1]
		}
		return len(v.sent) >= n
	})
	return m
}

// post posts an event to the server.
func (v *textCarrier) post(event map[string]string) {
	v.t.Helper()
	body, _ := json.Marshal(map[string]any{"events": []any{event}})
	r, err := http.NewRequest("POST", v.callback, strings.NewReader(string(body)))
	if err != nil {
		v.t.Fatal(err)
	}
	r.Header.Set("X-Secret", "open sesame")
	r.Header.Set("Content-Type", "application/json")
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		v.t.Fatal(err)
	}
	defer a.Body.Close()
	if a.StatusCode != 204 {
		v.t.Fatalf("the event %v is answered %s", event, a.Status)
	}
}

const (
	customer  = "+12125550101"
	reception = "+12025550143"
)

// An agent works with text messages. One arrives while the page is open, and the answer and its delivery are seen without another load. One
// for later is cancelled. A recipient who opted out cannot be written to. Another browser sees what has changed.
func TestConsole_Messages(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 4*time.Minute, "two browsers exchange messages with a carrier, and each state is examined in three sizes and colours")
	office := newOffice(t)
	way := office.AddCarrier("", nil)
	carrier := newTextCarrier(t, office, way.Trunk, reception)
	office.Want(201, "POST", "/contacts", map[string]any{"first_name": "Ada", "last_name": "Byron", "company": "Harbor Dental",
		"phones": []map[string]any{{"number": customer}}}, nil)
	p, _ := openConsole(office, "agent", "/console/messages", "440")
	p.shows("There are no conversations yet.", "Live")
	p.checked("messages-empty")

	carrier.post(map[string]string{"mid": "in1", "from": customer, "to": reception, "text": "Hello, is the appointment at nine still free?"})
	p.has("link", "Messages 1 new")
	p.clickText("link", "Ada Byron", "Hello, is the appointment")
	p.has("heading", "Ada Byron")
	p.has("log", "Messages with Ada Byron")
	p.has("link", "Messages") // read
	long := strings.Repeat("Nine is free. ", 12) + "€"
	p.types("textbox", "Write a message", long)
	p.shows("2 segments")
	p.checked("messages-thread")
	p.click("button", "Send")
	if m := carrier.wait(1); m.To != customer || m.Text != long {
		t.Errorf("the carrier got %+v", m)
	}
	p.shows("Sent")
	var sent struct {
		Data []struct {
			Segments int
			Source   string
		}
	}
	office.Want(200, "GET", "/sms?direction=outbound", nil, &sent)
	if len(sent.Data) != 1 || sent.Data[0].Segments != 2 || sent.Data[0].Source != "console" {
		t.Errorf("sent: %+v, want two segments from the console", sent)
	}
	carrier.post(map[string]string{"id": "m1", "state": "done"})
	p.shows("Delivered")

	p.types("textbox", "Write a message", "See you soon.")
	p.keyWith("Enter", ctrl)
	carrier.wait(2)
	carrier.post(map[string]string{"id": "m2", "state": "lost", "code": "unreachable"})
	p.shows("Not delivered")

	p.types("textbox", "Write a message", "One hour before the appointment.")
	p.click("button", "Send later")
	p.click("button", "Schedule")
	p.shows("Will be sent")
	p.checked("messages-scheduled")
	p.click("button", "Cancel this message")
	p.shows("Cancelled, not sent")
	p.workOnConversation(office)

	carrier.post(map[string]string{"mid": "in2", "from": customer, "to": reception, "text": "STOP"})
	p.shows("Nothing can be sent from +1 202 555 0143 to this number", "It wrote “STOP” on")
	p.hasNot("textbox", "Write a message")
	p.checked("messages-opted-out")
	carrier.post(map[string]string{"mid": "in3", "from": customer, "to": reception, "text": "START"})
	p.has("textbox", "Write a message")
	p.faultless()
}

// workOnConversation assigns the conversation that is open, closes it and opens it again. Each is seen in a list.
func (p *consolePage) workOnConversation(office *fixture.Org) {
	p.t.Helper()
	p.selectOption("Assigned to", "Dana Reed")
	p.click("link", "Mine")
	p.clickText("link", "Ada Byron", "One hour before")
	p.click("button", "Close")
	p.has("button", "Reopen")
	p.shows("No conversation is assigned to you.")
	p.click("link", "Closed")
	p.clickText("link", "Ada Byron", "One hour before")
	p.click("button", "Reopen")
	p.has("button", "Close")
	p.click("link", "All")
	p.clickText("link", "Ada Byron", "One hour before")
	p.click("button", "Mark as unread")
	p.has("link", "Messages 1 new")
	p.click("link", "Unread")
	p.clickText("link", "Ada Byron", "One hour before")
	p.has("link", "Messages")
	var all struct {
		Data []struct {
			ID, Status string
			AssigneeID *string `json:"assignee_id"`
		}
	}
	office.Want(200, "GET", "/sms/conversations", nil, &all)
	if len(all.Data) != 1 || all.Data[0].Status != "open" || all.Data[0].AssigneeID == nil {
		p.t.Errorf("the conversation: %+v", all)
	}
	office.Want(200, "PATCH", "/sms/conversations/"+all.Data[0].ID, map[string]any{"status": "closed"}, nil) // by somebody else
	p.has("button", "Reopen")
	p.click("button", "Reopen")
}

// A message is written to a contact by name, and to a number; the number of a conversation is called from it.
func TestConsole_NewMessageAndCall(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 3*time.Minute, "a browser writes messages and calls, and each state is examined in three sizes and colours")
	office := newOffice(t)
	way := office.AddCarrier("", nil)
	carrier := newTextCarrier(t, office, way.Trunk, reception)
	office.Want(201, "POST", "/contacts", map[string]any{"first_name": "Ada", "last_name": "Byron", "phones": []map[string]any{{"number": customer}}}, nil)
	p, _ := openConsole(office, "agent", "/console/messages", "440")
	p.click("link", "New message")
	p.types("textbox", "To", "Byr")
	p.has("button", "Ada Byron +1 212 555 0101")
	p.checked("messages-new")
	p.click("button", "Ada Byron +1 212 555 0101")
	p.types("textbox", "Write a message", "Good morning!")
	p.click("button", "Send")
	if m := carrier.wait(1); m.To != customer || m.Text != "Good morning!" {
		t.Errorf("the carrier got %+v", m)
	}
	p.has("log", "Messages with Ada Byron")
	p.click("link", "New message")
	p.types("textbox", "To", "+1 212 555 0102")
	p.types("textbox", "Write a message", "Good morning, you too!")
	p.click("button", "Send")
	if m := carrier.wait(2); m.To != "+12125550102" {
		t.Errorf("the carrier got %+v", m)
	}
	p.has("log", "Messages with +1 212 555 0102")
	p.click("button", "Turn on the phone")
	p.has("button", "Phone ready")
	p.click("button", "Call: +1 212 555 0102")
	until(t, "an outbound call", pageTime, func() bool {
		var calls struct{ Data []struct{ Direction string } }
		office.Want(200, "GET", "/calls?phone=%2B12125550102", nil, &calls)
		return len(calls.Data) == 1 && calls.Data[0].Direction == "outbound"
	})
	p.faultless()
}
