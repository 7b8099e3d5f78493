package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// pops are the screen pops of a number among what the stream told.
func pops(all []liveEvent, phone string) (found []map[string]any) {
	for _, e := range all {
		if e.kind == "screen_pop" && strings.Contains(e.data, phone) {
			var x map[string]any
			_ = json.Unmarshal([]byte(e.data), &x)
			found = append(found, x)
		}
	}
	return found
}

// A known caller is named on the phone that rings, in the record and on the agent's screen, whatever the systems beside do: one
// hangs, one is dead, one lies.
func TestAKnownCallerIsNamedBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{Env: quiet}, func(t *testing.T, s *rig.Server) {
		company := newSite(s)
		release := make(chan struct{})
		hanging := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-release:
				fmt.Fprint(w, `[{"id":"7","name":"Late Larry","company":"Latecomers","phone":"+12125550179"}]`)
			case <-r.Context().Done():
			}
		}))
		defer hanging.Close()
		liar := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `[{"id":"1","name":"Somebody Else","phone":"+12125550000"}]`)
		}))
		defer liar.Close()
		dead, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		gone := "http://" + dead.Addr().String()
		dead.Close()
		for name, address := range map[string]string{"Hanging": hanging.URL, "Liar": liar.URL, "Dead": gone} {
			company.Want(201, "POST", "/crm/connections", map[string]any{"provider": "http", "name": name, "timeout_ms": 10000,
				"settings": map[string]any{"lookup": map[string]any{"url": address + "/?q={{phone}}"}}}, nil)
		}
		company.Want(201, "POST", "/contacts", map[string]any{"first_name": "Grace", "last_name": "Hopper", "company": "Navy",
			"phones": []map[string]any{{"number": "(212) 555-0178"}}}, nil)
		company.known(release)
	})
}

func (s *site) known(release chan struct{}) {
	user := s.AddUser("Ada")
	way := s.carrier(user.ID, nil)
	phone := s.Server.Sipp(rig.Script{Scenario: "answer", Ring: 1500, Port: s.sippPhone(user.SIP), From: user.SIP.Username})
	told := s.stream("", func() {
		s.Server.Sipp(rig.Script{Scenario: "call", IP: way.ip, From: "+12125550178", Number: way.number, Talk: time.Second}).Wait()
		phone.Wait()
	}, func(e liveEvent) bool { return e.kind == "call.ended" })
	shown, answered := first(told, "screen_pop", "Grace Hopper"), first(told, "call.answered", "")
	if shown < 0 || answered < shown {
		s.T.Errorf("the screen pop is event %d, the answer %d of %v", shown, answered, told)
	}
	if p := pops(told, "+12125550178"); len(p) == 0 || p[0]["user_id"] != user.ID {
		s.T.Errorf("screen pops %v", p)
	}
	var calls struct {
		Data []struct{ ID, From_name string }
	}
	s.Want(200, "GET", "/calls?phone=%2B12125550178", nil, &calls)
	s.named(calls.Data[0].ID, "Grace Hopper", "Navy")
	s.late(release)
}

// named checks who a call says it is with, and what the phone was shown.
func (s *site) named(id, name, companyName string) {
	s.T.Helper()
	r := s.Do("GET", "/calls/"+id, nil).JSON()
	contact, _ := r["contact"].(map[string]any)
	if r["from_name"] != name || contact["name"] != name || contact["company"] != companyName {
		s.T.Errorf("the call says %v %v", r["from_name"], contact)
	}
	var trace traced
	s.Want(200, "GET", "/calls/"+id+"/trace", nil, &trace)
	for _, m := range trace.Messages {
		if m.Sent && strings.HasPrefix(m.Text, "INVITE") {
			if !strings.Contains(m.Text, "From: \""+name+"\"") {
				s.T.Errorf("the phone was shown %s", m.Text)
			}
			return
		}
	}
	s.T.Errorf("no INVITE in %s", trace.outline())
}

// late checks that an answer that comes after the deadline is shown too.
func (s *site) late(release chan struct{}) {
	user := s.AddUser("Bob")
	way := s.carrier(user.ID, nil)
	phone := s.Server.Sipp(rig.Script{Scenario: "answer", Ring: 2500, Port: s.sippPhone(user.SIP), From: user.SIP.Username})
	told := s.stream("", func() {
		time.AfterFunc(1500*time.Millisecond, func() { close(release) })
		s.Server.Sipp(rig.Script{Scenario: "call", IP: way.ip, From: "+12125550179", Number: way.number, Talk: time.Second}).Wait()
		phone.Wait()
	}, func(e liveEvent) bool { return e.kind == "call.ended" })
	p := pops(told, "+12125550179")
	if len(p) != 2 || p[0]["complete"] != false || p[0]["contact"] != nil || p[1]["complete"] != true || !strings.Contains(fmt.Sprint(p[1]["contact"]), "Late Larry") {
		s.T.Errorf("screen pops %v", p)
	}
	var found map[string]any
	s.Want(200, "GET", "/contacts/lookup?phone=%2B12125550179", nil, &found)
	if found["cached"] != true || found["source"] != "Hanging" || found["company"] != "Latecomers" {
		s.T.Errorf("asked again %v", found)
	}
	r := s.record("+12125550179")
	if got := s.Do("GET", "/calls/"+r.CallID, nil).JSON(); got["from_name"] != "Late Larry" {
		s.T.Errorf("the call is from %v", got["from_name"])
	}
}
