package command_test

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/e2e/rig"
	"soniq/internal/platform/db/pgtest"
)

// wire is a proxy for connections to a database that can be cut.
type wire struct {
	t      *testing.T
	to     string
	listen net.Listener
	all    sync.WaitGroup

	mu  sync.Mutex // guards the fields below
	cut bool
	on  map[net.Conn]bool
}

func newWire(t *testing.T, to string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{t: t, to: to, listen: l, on: map[net.Conn]bool{}}
	w.all.Go(w.serve)
	t.Cleanup(func() {
		_ = l.Close()
		w.set(true)
		w.all.Wait()
	})
	return w
}

func (w *wire) serve() {
	for {
		c, err := w.listen.Accept()
		if err != nil {
			return
		}
		w.all.Go(func() { w.carry(c) })
	}
}

func (w *wire) carry(near net.Conn) {
	defer near.Close()
	far, err := net.Dial("tcp", w.to)
	if err != nil || !w.keep(near) || !w.keep(far) {
		return
	}
	defer far.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(far, near)
		_ = far.Close()
	}()
	_, _ = io.Copy(near, far)
	_ = near.Close()
	<-done
}

// keep records a connection, or returns false if the wire is cut.
func (w *wire) keep(c net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.cut {
		w.on[c] = true
	}
	return !w.cut
}

// set cuts or restores the wire.
func (w *wire) set(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
	for c := range w.on {
		_ = c.Close()
		delete(w.on, c)
	}
}

// TestDatabase_OutageLosesNothing cuts the connection to PostgreSQL. Requests get 503, and a call in progress
// continues and can end. Once the database is back, everything is stored and published.
func TestDatabase_OutageLosesNothing(t *testing.T) {
	t.Parallel()
	address := os.Getenv("SONIQ_TEST_POSTGRES")
	if address == "" {
		t.Skip("SONIQ_TEST_POSTGRES names no PostgreSQL")
	}
	u, err := url.Parse(pgtest.New(t, address))
	if err != nil {
		t.Fatal(err)
	}
	w := newWire(t, u.Host)
	u.Host = w.listen.Addr().String()
	s := rig.Start(t, rig.Options{DB: u.String(), Flags: []string{"--transcriber", "off"}, Upset: true})
	o := newOffice(t, s)
	caller, callee := o.call(4 * time.Second)
	call := o.live()[0]

	w.set(true)
	for _, method := range []string{"POST", "GET"} {
		var body any
		if method == "POST" {
			body = map[string]any{"email": "away@example.org", "first_name": "Away"}
		}
		r := o.Do(method, "/users", body)
		if p := r.JSON(); r.Status != 503 || p["code"] != "overloaded" || r.Header.Get("Retry-After") == "" || !strings.Contains(p["detail"].(string), "database") {
			t.Errorf("%s without a database: %d %s", method, r.Status, r.Body)
		}
	}
	if r, err := http.Get("http://" + s.HTTP + "/ready"); err != nil || r.Body.Close() != nil || r.StatusCode != 503 {
		t.Errorf("/ready without a database: %+v %v", r, err)
	}
	caller.Wait()
	callee.Wait()
	w.set(false)

	ended := o.hooks.Wait("call.ended", time.Minute, func(e rig.Event) bool { return e.Data["call_id"] == call })
	if ended.Data["end_reason"] != "caller_hangup" || ended.Data["talk_duration_seconds"].(float64) < 3 {
		t.Errorf("call.ended: %s", ended.Body)
	}
	says(t, s.Log(), "end not written yet", "end written after all")
	told := o.hooks.Wait("call.recording", time.Minute, func(e rig.Event) bool { return e.Data["call_id"] == call })
	if told.Data["status"] != "available" {
		t.Errorf("recording: %s", told.Body)
	}
	o.talk(300 * time.Millisecond)
	people := users(t, o)
	if people["away@example.org"] != 0 || len(people) != 2 {
		t.Errorf("users: %v", people)
	}
}
