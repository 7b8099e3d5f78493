package eventstream_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"soniq/internal/api/eventstream"
	"soniq/internal/platform/access"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/op"
	"soniq/internal/platform/op/optest"
)

var ctx = context.Background()

// fixture is an outbox with its reader, and a stream of it over HTTP.
type fixture struct {
	t      *testing.T
	outbox *event.Outbox
	org    string
	url    string
	stream *eventstream.Service
	ended  chan struct{} // receives after each served request

	mu        sync.Mutex // guards the fields below
	principal access.Principal
	invalid   error
	seen      []event.Event
	checked   chan struct{} // closed when a stream asks for scopes; nil: nobody waits for it
}

func newFixture(t *testing.T, d *db.DB) *fixture {
	t.Helper()
	return newFixtureWith(t, d, 50*time.Millisecond)
}

// newFixtureWith is newFixture with another time between two heartbeats.
func newFixtureWith(t *testing.T, d *db.DB, heartbeat time.Duration) *fixture {
	t.Helper()
	s := &fixture{t: t, outbox: &event.Outbox{DB: d, Bus: bus.New()}, org: db.NewID("org"), ended: make(chan struct{}, 1)}
	s.must(d.Tx(ctx, func(tx db.Querier) error {
		const q = `INSERT INTO orgs (id, path, environment, name, plan, status, country, timezone, language, settings, created_at,
			updated_at)
			VALUES ($1, $2, 'live', 'Test', 'standard', 'active', 'GB', 'UTC', 'en', '{}', 0, 0)`
		_, err := tx.Exec(ctx, q, s.org, "/"+s.org+"/")
		return err
	}))
	s.principal = optest.Admin(s.org)
	collect := func(_ context.Context, _ db.Querier, batch []event.Event) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.seen = append(s.seen, batch...)
		return nil
	}
	reader := &event.Reader{Outbox: s.outbox, Log: slog.New(slog.DiscardHandler), CreateDeliveries: collect}
	running, stop := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { reader.Run(running) })
	s.stream = eventstream.New(eventstream.Config{Outbox: s.outbox, Changed: "changed.keys", Heartbeat: heartbeat,
		WriteTimeout: time.Second, Credentials: s})
	server := s.serve(d)
	t.Cleanup(func() { s.stream.Close(); server.Close(); stop(); done.Wait() })
	return s
}

// StillHeld returns the scopes of a holder that the fixture's principal has now.
func (s *fixture) StillHeld(_ context.Context, h access.Holder) ([]access.Scope, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.checked != nil {
		close(s.checked)
		s.checked = nil
	}
	return access.Intersect(h.Scopes, s.principal.Scopes), nil
}

// changeScopes changes the scopes of the fixture's principal, and waits until an open stream has asked for them.
func (s *fixture) changeScopes(to ...access.Scope) {
	s.t.Helper()
	checked := make(chan struct{})
	s.mu.Lock()
	s.principal.Scopes, s.checked = to, checked
	s.mu.Unlock()
	select {
	case <-checked:
	case <-time.After(time.Minute):
		s.t.Fatal("the stream has not checked its credential")
	}
}

// Revalidate returns the error that the test has set.
func (s *fixture) Revalidate(context.Context, access.Principal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.invalid
}

// serve serves the stream with a limit on slow requests, like the REST server.
func (s *fixture) serve(d *db.DB) *httptest.Server {
	mux := http.NewServeMux()
	op.NewAPI(mux, &op.Pipeline{DB: d, Log: slog.New(slog.DiscardHandler)}, s.stream.Operations())
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		who := s.principal
		s.mu.Unlock()
		mux.ServeHTTP(w, r.WithContext(access.With(r.Context(), who)))
		select {
		case s.ended <- struct{}{}:
		default:
		}
	}))
	server.Config.ReadTimeout = 300 * time.Millisecond
	server.Start()
	s.url = server.URL + op.Prefix + "/events/stream"
	return server
}

func (s *fixture) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *fixture) publish(p event.Payload) {
	s.t.Helper()
	s.must(s.outbox.DB.Tx(ctx, func(tx db.Querier) error { return s.outbox.Publish(ctx, tx, s.org, p) }))
}

// streamClient is a client of the stream.
type streamClient struct {
	t     *testing.T
	body  io.ReadCloser
	lines *bufio.Reader
}

func (s *fixture) listen(query string, header ...string) *streamClient {
	s.t.Helper()
	r, err := http.NewRequest("GET", s.url+query, nil)
	s.must(err)
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	a := s.do(r)
	if a.StatusCode != 200 || a.Header.Get("Content-Type") != "text/event-stream" {
		b, _ := io.ReadAll(a.Body)
		s.t.Fatalf("stream: %d %s", a.StatusCode, b)
	}
	s.t.Cleanup(func() { a.Body.Close() })
	return &streamClient{s.t, a.Body, bufio.NewReader(a.Body)}
}

// get sends a GET request, see do.
func (s *fixture) get(address string) *http.Response {
	s.t.Helper()
	r, err := http.NewRequest("GET", address, nil)
	s.must(err)
	return s.do(r)
}

// do sends a request. It sends it again if the server did not read it within its ReadTimeout, because the machine is busy.
func (s *fixture) do(r *http.Request) *http.Response {
	s.t.Helper()
	a, err := http.DefaultClient.Do(r)
	for range 10 {
		if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) { // reset: the request came as the connection was closed
			break
		}
		a, err = http.DefaultClient.Do(r)
	}
	s.must(err)
	return a
}

// next returns the next event: "id kind data".
func (r *streamClient) next() string {
	r.t.Helper()
	e, err := r.read()
	if err != nil {
		r.t.Fatalf("the stream ended: %v", err)
	}
	return e
}

func (r *streamClient) read() (string, error) {
	var id, kind, data string
	for {
		line, err := r.lines.ReadString('\n')
		if err != nil {
			return "", err
		}
		name, value, _ := strings.Cut(strings.TrimRight(line, "\n"), ": ")
		switch {
		case name == "id":
			id = value
		case name == "event":
			kind = value
		case name == "data":
			data = value
		case line == "\n" && kind != "":
			return strings.TrimSpace(id + " " + kind + " " + data), nil
		case line == "\n":
			id = ""
		}
	}
}

func missed(n int) event.CallMissed { return event.CallMissed{CallID: "call_1", WaitSeconds: n} }

func waits(n int) string { return fmt.Sprintf(`"wait_seconds":%d,`, n) }

func (s *fixture) refused(query string, status int, code string) {
	s.t.Helper()
	a := s.get(s.url + query)
	defer a.Body.Close()
	b, _ := io.ReadAll(a.Body)
	if a.StatusCode != status || !strings.Contains(string(b), `"`+code+`"`) {
		s.t.Errorf("%s: %d %s, want %d %s", query, a.StatusCode, b, status, code)
	}
}
