package contact

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

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// TestScreenPop_Latency measures the time from the INVITE to the screen pop on the agent's page, for known and unknown callers. None, one
// or all of six connected systems hang meanwhile. It runs with SONIQ_BENCH only.
func TestScreenPop_Latency(t *testing.T) {
	if os.Getenv("SONIQ_BENCH") == "" {
		t.Skip("measured with SONIQ_BENCH=1")
	}
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	user := company.AddUser("Ada")
	way := company.AddCarrier(user.ID, nil)
	company.Want(201, "POST", "/contacts", map[string]any{"first_name": "Grace", "phones": []map[string]any{{"number": "+12125550178"}}}, nil)
	port := company.RegisterSipp(user.SIP)
	known := func(int) string { return "+12125550178" }
	unknown := func(from int) func(n int) string {
		return func(n int) string { return fmt.Sprintf("+1212555%04d", from+n) }
	}
	measurePops(company, "known", way, user, port, known)
	measurePops(company, "unknown", way, user, port, unknown(1000))
	// later than the server waits, but not a failure that would open the circuit breaker
	late := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
			measurePops(company, "unknown, one system hangs", way, user, port, unknown(2000))
		}
	}
	measurePops(company, "unknown, all of six systems hang", way, user, port, unknown(3000))
	measurePops(company, "known, all of six systems hang", way, user, port, known)
}

// popCalls is the number of measured calls.
const popCalls = 30

// measurePops measures the time from INVITE to screen pop over many calls.
func measurePops(s *fixture.Org, what string, way fixture.Carrier, user rig.User, port int, from func(int) string) {
	var took []time.Duration
	for n := range popCalls {
		var shown, started time.Time
		var caller *rig.Sipp
		phone := s.Server.Sipp(rig.Script{Scenario: "answer", Ring: 400, Port: port, From: user.SIP.Username})
		s.ReadStream("", func() {
			caller = s.Server.Sipp(rig.Script{Scenario: "call", IP: way.IP, From: from(n), Number: way.Number, Talk: 10 * time.Millisecond})
		}, func(e fixture.StreamEvent) bool {
			var x struct {
				Started time.Time `json:"started_at"`
			}
			switch e.Type {
			case "screen_pop":
				if shown.IsZero() && strings.Contains(e.Data, from(n)) { // late results for the previous call are published too
					shown = time.Now()
				}
			case "call.ended":
				_ = json.Unmarshal([]byte(e.Data), &x)
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
	s.T.Logf("%s: %d calls, from the INVITE to the page p50 %s, p95 %s, worst %s", what, popCalls, took[popCalls/2], took[popCalls*95/100], took[popCalls-1])
}

// TestScreenPop_AfterTransfer transfers a known caller from Ada to Bob, whose screen pop names the caller and Ada. A
// later transfer to Carol, which requests no screen pop, sends none.
func TestScreenPop_AfterTransfer(t *testing.T) {
	t.Parallel()
	o := fixture.NewOffice(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))
	o.Want(201, "POST", "/contacts", map[string]any{"first_name": "Grace", "phones": []map[string]any{{"number": "+12125550178"}}}, nil)
	way := o.AddCarrier(o.Ada.ID, nil)
	path := ""
	told := o.ReadStream("", func() {
		far := o.Server.Sipp(rig.Script{Scenario: "call_until_bye", IP: way.IP, From: "+12125550178", Number: way.Number})
		o.AdaPhone.Wait("CALL_ESTABLISHED", "")
		path = "/calls/" + o.LiveCall(func(c map[string]any) bool { return c["status"] == "in_progress" })["id"].(string)
		to := func(body map[string]any, agent rig.User, p *rig.Phone) {
			o.Want(200, "POST", path+"/transfer", body, nil)
			p.Wait("CALL_ESTABLISHED", "")
			if body["mode"] == "warm" {
				o.Want(200, "POST", path+"/transfer/complete", map[string]any{}, nil)
			}
			o.LiveCall(func(c map[string]any) bool { return c["agent_id"] == agent.ID })
		}
		to(map[string]any{"to": "ext:" + o.Bob.Extension, "mode": "warm"}, o.Bob, o.BobPhone)
		to(map[string]any{"to": "user:" + o.Carol.ID, "summary_to_target": false}, o.Carol, o.CarolPhone)
		to(map[string]any{"to": "user:" + o.Bob.ID}, o.Bob, o.BobPhone)
		o.Want(200, "POST", path+"/end", map[string]any{}, nil)
		far.Wait()
	}, func(e fixture.StreamEvent) bool { return e.Type == "call.ended" })
	by := func(u rig.User) string { return fmt.Sprint(map[string]any{"id": u.ID, "name": u.Name}) }
	want := []struct{ user, by string }{{o.Ada.ID, fmt.Sprint(nil)}, {o.Bob.ID, by(o.Ada)}, {o.Bob.ID, by(o.Carol)}}
	found := fixture.ScreenPops(told, "+12125550178")
	if len(found) != len(want) {
		t.Fatalf("told %d screen pops, want %d: %v", len(found), len(want), found)
	}
	for i, p := range found {
		contact, _ := p["contact"].(map[string]any)
		if p["user_id"] != want[i].user || "/calls/"+fmt.Sprint(p["call_id"]) != path || contact["name"] != "Grace" || fmt.Sprint(p["transferred_by"]) != want[i].by {
			t.Errorf("screen pop %d tells %v; want it for %s, by %s", i, p, want[i].user, want[i].by)
		}
	}
}
