package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// TestMeasureScreenPop tells how long after a caller's INVITE an agent's page has the screen pop, of callers who are known and of
// such whom nobody knows, while none, one or all of six connected systems hang. With SONIQ_BENCH only.
func TestMeasureScreenPop(t *testing.T) {
	if os.Getenv("SONIQ_BENCH") == "" {
		t.Skip("measured with SONIQ_BENCH=1")
	}
	s := rig.Start(t, rig.Options{Env: quiet})
	company := newSite(s)
	user := company.AddUser("Ada")
	way := company.carrier(user.ID, nil)
	company.Want(201, "POST", "/contacts", map[string]any{"first_name": "Grace", "phones": []map[string]any{{"number": "+12125550178"}}}, nil)
	port := company.sippPhone(user.SIP)
	known := func(int) string { return "+12125550178" }
	unknown := func(from int) func(n int) string {
		return func(n int) string { return fmt.Sprintf("+1212555%04d", from+n) }
	}
	company.poppedWithin("known", way, user, port, known)
	company.poppedWithin("unknown", way, user, port, unknown(1000))
	late := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // later than anybody waits, and no failure that opened a breaker
		select {
		case <-time.After(700 * time.Millisecond):
			fmt.Fprint(w, "[]")
		case <-r.Context().Done():
		}
	}))
	defer late.Close()
	for n := range 6 {
		company.Want(201, "POST", "/crm/connections", map[string]any{"provider": "http", "name": fmt.Sprintf("Hanging %d", n), "timeout_ms": 10000,
			"settings": map[string]any{"lookup": map[string]any{"url": late.URL + "/?q={{phone}}"}}}, nil)
		if n == 0 {
			company.poppedWithin("unknown, one system hangs", way, user, port, unknown(2000))
		}
	}
	company.poppedWithin("unknown, all of six systems hang", way, user, port, unknown(3000))
	company.poppedWithin("known, all of six systems hang", way, user, port, known)
}

const popped = 30

// poppedWithin calls again and again.
func (s *site) poppedWithin(what string, way carrier, user rig.User, port int, from func(int) string) {
	var took []time.Duration
	for n := range popped {
		var shown, started time.Time
		var caller *rig.Sipp
		phone := s.Server.Sipp(rig.Script{Scenario: "answer", Ring: 400, Port: port, From: user.SIP.Username})
		s.stream("", func() {
			caller = s.Server.Sipp(rig.Script{Scenario: "call", IP: way.ip, From: from(n), Number: way.number, Talk: 10 * time.Millisecond})
		}, func(e liveEvent) bool {
			var x struct {
				Started time.Time `json:"started_at"`
			}
			switch e.kind {
			case "screen_pop":
				if shown.IsZero() && strings.Contains(e.data, from(n)) { // late answers of the call before are told too
					shown = time.Now()
				}
			case "call.ended":
				_ = json.Unmarshal([]byte(e.data), &x)
				started = x.Started
				return true
			}
			return false
		})
		caller.Wait()
		phone.Wait()
		took = append(took, shown.Sub(started))
	}
	slices.Sort(took)
	s.T.Logf("%s: %d calls, from the INVITE to the page p50 %s, p95 %s, worst %s", what, popped, took[popped/2], took[popped*95/100], took[popped-1])
}
