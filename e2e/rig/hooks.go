package rig

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"soniq/e2e/limit"
)

// Event holds a webhook request as received.
type Event struct {
	Event  string         `json:"event"`
	Data   map[string]any `json:"data"`
	Header http.Header    `json:"-"`
	Body   string         `json:"-"`
}

// Receiver is a customer's server that receives webhooks and checks their signatures.
type Receiver struct {
	ID     string // of the webhook
	Secret string
	Answer func(e Event, n int) int // the status for the n-th request; nil: 200

	t      testing.TB
	server *httptest.Server
	mu     sync.Mutex // guards the fields below
	events []Event
	count  int
	more   chan struct{}
}

// Hook registers a receiver for all events of a client's organisation.
func (c *Client) Hook(answer func(e Event, n int) int) *Receiver {
	c.T.Helper()
	r := &Receiver{t: c.T, Answer: answer, more: make(chan struct{})}
	r.server = httptest.NewServer(r)
	c.T.Cleanup(r.server.Close)
	var w struct{ ID, Secret string }
	r.mu.Lock()
	defer r.mu.Unlock()
	c.Want(201, "POST", "/webhooks", map[string]any{"url": r.server.URL, "events": []string{"*"}}, &w)
	r.ID, r.Secret = w.ID, w.Secret
	return r
}

func (r *Receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, _ := io.ReadAll(q.Body)
	e := Event{Header: q.Header.Clone(), Body: string(body)}
	if err := json.Unmarshal(body, &e); err != nil {
		r.t.Errorf("webhook body: %v", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if want := Signature(r.Secret, string(body)); q.Header.Get("x-service-signature") != want {
		r.t.Errorf("signature of %s: got %q, want %q", e.Event, q.Header.Get("x-service-signature"), want)
	}
	r.count++
	status := http.StatusOK
	if r.Answer != nil {
		status = r.Answer(e, r.count)
	}
	if status < 300 {
		r.events = append(r.events, e)
		close(r.more)
		r.more = make(chan struct{})
	}
	w.WriteHeader(status)
}

// Signature returns the signature of a body.
func Signature(secret, body string) string {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte(body))
	return hex.EncodeToString(m.Sum(nil))
}

// Events returns the events accepted so far.
func (r *Receiver) Events() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Event(nil), r.events...)
}

// Wait returns the first accepted event of a kind for which match is true (nil: any), waiting for it as Until does.
func (r *Receiver) Wait(kind string, usual time.Duration, match func(Event) bool) Event {
	r.t.Helper()
	hang := limit.Hang(usual)
	deadline := time.After(hang)
	for {
		r.mu.Lock()
		more := r.more
		for _, e := range r.events {
			if e.Event == kind && (match == nil || match(e)) {
				r.mu.Unlock()
				return e
			}
		}
		r.mu.Unlock()
		select {
		case <-more:
		case <-deadline:
			r.t.Fatalf("event %s did not arrive within %s; there are %v", kind, hang, r.kinds())
		}
	}
}

func (r *Receiver) kinds() []string {
	var all []string
	for _, e := range r.Events() {
		all = append(all, e.Event)
	}
	return all
}
