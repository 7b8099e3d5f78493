package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/platform/access"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/egress"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op/optest"
	"soniq/internal/platform/seal"
)

// fixture is the service under test on a real database.
type fixture struct {
	*Service
	t      testing.TB
	org    string
	outbox *event.Outbox
	reader *event.Reader
	api    *optest.Server
}

// logger returns a logger that writes errors to the test log.
func logger(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(logWriter{t}, &slog.HandlerOptions{Level: slog.LevelError}))
}

type logWriter struct{ t testing.TB }

func (w logWriter) Write(b []byte) (int, error) { w.t.Logf("%s", b); return len(b), nil }

// newFixture builds a fixture without starting it. now may be nil.
func newFixture(t testing.TB, d *db.DB, now func() time.Time) *fixture {
	t.Helper()
	if now == nil {
		now = time.Now
	}
	sealer, err := seal.New()
	if err != nil {
		t.Fatal(err)
	}
	b := bus.New()
	orgs := org.New(d, b, now)
	outbox := &event.Outbox{DB: d, Bus: b, Clock: clock.Func(now)}
	s := New(Config{DB: d, Bus: b, Outbox: outbox, Queue: &job.Queue{Bus: b, Clock: clock.Func(now)}, Seal: sealer, Log: logger(t),
		Clock: clock.Func(now), Node: db.NewID("node"), Organizations: orgs, Numbers: fakeNumbers{}, Recordings: fakeRecordings{},
		Rights: &fakeRights{},
		Guard:  egress.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})})
	h := &fixture{Service: s, t: t, org: newOrg(t, d), outbox: outbox}
	h.reader = &event.Reader{Outbox: h.outbox, Log: logger(t), CreateDeliveries: s.CreateDeliveries}
	h.api = optest.New(t, d, append(s.Operations(), orgs.Operations()...)...)
	return h
}

// fakeRights leaves every scope that was held, until lost names one.
type fakeRights struct{ lost atomic.Value }

func (r *fakeRights) StillHeld(_ context.Context, h access.Holder) ([]access.Scope, error) {
	if !h.Recorded() {
		return access.All(), nil
	}
	return slices.DeleteFunc(slices.Clone(h.Scopes), func(s access.Scope) bool { return s == r.lost.Load() }), nil
}

// fakeNumbers are the numbers of every organisation: one.
type fakeNumbers struct{}

func (fakeNumbers) NumberID(_ context.Context, _ db.Querier, _, e164 string) (string, error) {
	if e164 == "+12025550143" {
		return "num_1", nil
	}
	return "", nil
}

// fakeRecordings signs addresses visibly.
type fakeRecordings struct{}

func (fakeRecordings) SignedURL(maker access.Holder, address string) string {
	return address + "?signature=for-" + maker.OrgID + "-by-" + maker.KeyID
}

func newOrg(t testing.TB, d *db.DB) string {
	t.Helper()
	id := db.NewID("org")
	const q = `INSERT INTO orgs (id, path, environment, name, plan, status, country, timezone, language, settings, created_at, updated_at)
		VALUES ($1, $2, 'live', 'Test', 'standard', 'active', 'GB', 'UTC', 'en', '{}', $3, $3)`
	err := d.Tx(context.Background(), func(tx db.Querier) error {
		_, err := tx.Exec(context.Background(), q, id, "/"+id+"/", db.At(time.Now()))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// run starts the event reader and the delivery until the test ends.
func (h *fixture) run() {
	h.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	if err := h.Start(ctx); err != nil {
		h.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { h.reader.Run(ctx); close(done) }()
	h.t.Cleanup(func() {
		cancel()
		<-done
		stop, end := context.WithTimeout(context.Background(), 5*time.Second)
		defer end()
		h.Stop(stop)
	})
}

// create adds a webhook through the API. more adds members to url and events.
func (h *fixture) create(url string, more map[string]any) (id, secret string) {
	h.t.Helper()
	body := map[string]any{"url": url, "events": []string{"*"}}
	for k, v := range more {
		body[k] = v
	}
	a := h.api.Do(optest.Admin(h.org), "POST", "/webhooks", body).Want(201)
	return a.Text("id"), a.Text("secret")
}

func (h *fixture) get(path string) *optest.Answer {
	h.t.Helper()
	return h.api.Do(optest.Admin(h.org), "GET", path, nil).Want(200)
}

func (h *fixture) publish(events ...event.Payload) {
	h.t.Helper()
	err := h.cfg.DB.Tx(context.Background(), func(tx db.Querier) error {
		for _, p := range events {
			if err := h.outbox.Publish(context.Background(), tx, h.org, p); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// eventually waits until the condition holds, at most a minute.
func eventually(t testing.TB, claim string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	late := time.After(2 * time.Minute)
	for !holds() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("not seen within two minutes: %s", claim)
		}
	}
}

// receivedRequest is a request that a receiver got.
type receivedRequest struct {
	http.Header
	body       string
	receivedAt time.Time
}

// receiver is a customer's server. answer answers the n-th request (from 1); nil: 200.
type receiver struct {
	*httptest.Server
	answer func(n int, w http.ResponseWriter, r *http.Request)

	mu  sync.Mutex // guards all
	all []receivedRequest
}

func newReceiver(t testing.TB, answer func(n int, w http.ResponseWriter, r *http.Request)) *receiver {
	t.Helper()
	r := &receiver{answer: answer}
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) serve(w http.ResponseWriter, q *http.Request) {
	b, _ := io.ReadAll(q.Body)
	r.mu.Lock()
	r.all = append(r.all, receivedRequest{q.Header, string(b), time.Now()})
	n := len(r.all)
	r.mu.Unlock()
	if r.answer != nil {
		r.answer(n, w, q)
	}
}

func (r *receiver) list() []receivedRequest {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]receivedRequest(nil), r.all...)
}

func (r *receiver) count() int { r.mu.Lock(); defer r.mu.Unlock(); return len(r.all) }

func status(code int) func(int, http.ResponseWriter, *http.Request) {
	return func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// numberedEvents returns n events of one call.
func numberedEvents(call string, n int) []event.Payload {
	var all []event.Payload
	for i := range n {
		all = append(all, event.CallRecording{CallID: call, RecordingID: fmt.Sprintf("rec_%d", i), DurationSeconds: i})
	}
	return all
}

type (
	responseWriter = http.ResponseWriter
	request        = http.Request
)

func callName(i int) string { return fmt.Sprintf("call_%d", i) }

func admin(h *fixture) access.Principal { return optest.Admin(h.org) }

// checkOrder checks that the first attempts of each call's events arrive in the order of their sequence.
func checkOrder(t testing.TB, all []receivedRequest) {
	t.Helper()
	last, seen := map[string]int{}, map[string]bool{}
	for _, g := range all {
		var e struct {
			Data struct {
				CallID string `json:"call_id"`
			}
		}
		if err := json.Unmarshal([]byte(g.body), &e); err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(g.Get("X-Service-Sequence"))
		if err != nil {
			t.Fatal(err)
		}
		if seen[g.Get("Webhook-Id")] {
			continue
		}
		seen[g.Get("Webhook-Id")] = true
		if n < last[e.Data.CallID] {
			t.Errorf("%s: event %d after event %d", e.Data.CallID, n, last[e.Data.CallID])
		}
		last[e.Data.CallID] = n
	}
}
