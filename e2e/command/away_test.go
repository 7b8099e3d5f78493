package command_test

import (
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
	"soniq/internal/platform/db/pgtest"
)

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
	w := fixture.NewWire(t, u.Host)
	u.Host = w.Addr()
	s := rig.Start(t, rig.Options{DB: u.String(), Flags: []string{"--transcriber", "off"}, Upset: true})
	o := newOffice(t, s)
	caller, callee := o.call(4 * time.Second)
	call := o.live()[0]

	w.Set(true)
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
	w.Set(false)

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
