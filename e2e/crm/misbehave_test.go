package crm

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// asks connects a stand-in that answers lookups.
func (c company) asks(name string, answer http.HandlerFunc, more ...any) string {
	c.T.Helper()
	s := httptest.NewServer(answer)
	c.T.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return c.connect("http", name, map[string]any{"lookup": map[string]any{"url": s.URL + "/?q={{phone}}"}}, more...)
}

func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }
}

// Systems that hang, are down, send wrong data, send too much, redirect or ask for a pause do not delay a lookup. The
// response comes in time with the results of the good system, and reports the failure of each other system.
func TestLookup_FailingSystems(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: quiet})
	c := newCompany(s)
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := "http://" + dead.Addr().String()
	dead.Close()
	var followed atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { followed.Add(1); fmt.Fprint(w, "[]") }))
	defer elsewhere.Close()
	const somebody = `[{"id":"1","name":"Somebody Else","phone":"+442079460000"}]`
	c.asks("Good", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `[{"id":"7","name":"Grace","company":"Navy","phone":%q}]`, r.URL.Query().Get("q"))
	}, "priority", 200)
	c.asks("Hanging", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	c.asks("Dripping", func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = w.Write([]byte(" "))
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	c.connect("http", "Dead", map[string]any{"lookup": map[string]any{"url": gone + "/?q={{phone}}"}})
	c.asks("Garbage", says("<html>Please sign in</html>"))
	c.asks("Wrong person", says(somebody))
	c.asks("Huge", says(`["`+strings.Repeat("x", 3<<20)+`"]`))
	c.asks("Deep", says(strings.Repeat("[", 500_000)))
	c.asks("Leading elsewhere", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) })
	c.asks("Busy", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Retry-After", "5"); w.WriteHeader(429) })
	c.asks("Busy without a word", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) })
	c.asks("Locked", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) })
	want := map[string]string{"Good": "hit", "Hanging": "timeout", "Dripping": "timeout", "Dead": "error", "Garbage": "error", "Wrong person": "miss", "Huge": "error",
		"Deep": "error", "Leading elsewhere": "error", "Busy": "rate_limited", "Busy without a word": "rate_limited", "Locked": "error"}
	began := time.Now()
	w := c.lookup("phone", "+442079460001", "timeout_ms=1000")
	if took := time.Since(began); w.Name != "Grace" || w.Complete || w.Lookup_ms > 1400 || took > 5*time.Second {
		t.Errorf("after %s %+v", took, w)
	}
	for name, status := range want {
		if got := w.status(name); got != status && (name != "Huge" || got != "timeout") { // a slow machine reads no three megabytes in time
			t.Errorf("%s is %q, want %q", name, got, status)
		}
	}
	if followed.Load() > 0 {
		t.Error("a redirect was followed")
	}
	c.opened(want)
}

// opened makes lookups until the circuit breakers of the failing systems are open; the good one still answers.
func (c company) opened(want map[string]string) {
	c.T.Helper()
	var last lookupResult
	rig.Until(c.T, "the breakers to open", 2*time.Minute, func() bool {
		last = c.lookup("phone", "+442079460001", "fresh=true", "timeout_ms=1000")
		if last.Name != "Grace" {
			c.T.Errorf("meanwhile %+v", last)
		}
		for name, status := range want {
			got := last.status(name)
			if (status == "error" || status == "timeout") && got != "circuit_open" || status == "rate_limited" && got != "rate_limited" {
				return false
			}
		}
		return true
	})
	if !last.Complete || last.Lookup_ms > 700 {
		c.T.Errorf("with all breakers open %+v", last)
	}
}

// A system whose circuit breaker was open is queried again, and its results count again. A system that asked for a
// pause is not queried until the pause is over.
func TestLookup_RecoveredSystem(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 60*time.Second, "a system that failed is left alone for 30 s")
	c := newCompany(rig.Shared(t, rig.Options{Env: quiet}))
	var well atomic.Bool
	var asked, busy atomic.Int64
	c.asks("Ill", func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1); !well.Load() {
			w.WriteHeader(503)
			return
		}
		fmt.Fprintf(w, `[{"id":"7","name":"Grace","phone":%q}]`, r.URL.Query().Get("q"))
	})
	c.asks("Busy", func(w http.ResponseWriter, _ *http.Request) {
		if busy.Add(1) == 1 {
			w.Header().Set("Retry-After", "3")
			w.WriteHeader(429)
			return
		}
		fmt.Fprint(w, "[]")
	})
	paused := time.Now()
	for i := range 6 {
		c.lookup("phone", e164("7946", i), "timeout_ms=2000")
	}
	if w := c.lookup("phone", e164("7946", 7)); w.status("Ill") != "circuit_open" || asked.Load() != 5 || w.status("Busy") != "rate_limited" || busy.Load() != 1 {
		t.Errorf("asked %d and %d times, %+v", asked.Load(), busy.Load(), w)
	}
	rig.Until(t, "the pause to be over", time.Minute, func() bool { return c.lookup("phone", e164("7946", 8), "fresh=true").status("Busy") == "miss" })
	if took := time.Since(paused); took < 3*time.Second {
		t.Errorf("it was asked again after %s", took)
	}
	well.Store(true)
	rig.Until(t, "it to be asked again", 2*time.Minute, func() bool { return c.lookup("phone", e164("7946", 9), "fresh=true").Name == "Grace" })
}
