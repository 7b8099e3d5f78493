package contact

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// A known caller is named on the ringing phone, in the record and in the agent's screen pop. This does not depend on
// the other connected systems: one hangs, one is down, one sends wrong data.
func TestLookup_CallerNamedBeforeAnswer(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 60*time.Second, "two calls ring for seconds, so that lookups are late")
	rig.Either(t, rig.Options{Load: rig.All, Env: fixture.NoSpeech}, func(t *testing.T, s *rig.Server) {
		company := fixture.NewOrg(s)
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
		wantKnownCaller(company, release)
	})
}

// wantKnownCaller calls as a known caller, and checks the screen pop before the answer and the names afterwards.
func wantKnownCaller(s *fixture.Org, release chan struct{}) {
	user := s.AddUser("Ada")
	way := s.AddCarrier(user.ID, nil)
	id := wantScreenPop(s, user, way)
	wantNamed(s, id, "Grace Hopper", "Navy")
	// the phone rings without a name if the lookup takes longer than the server waits
	for tries := 1; !displayed(s, id, "Grace Hopper"); tries++ {
		if tries == 3 {
			s.T.Fatalf("three INVITEs had no display name")
		}
		id = wantScreenPop(s, user, way)
	}
	wantLateAnswer(s, release)
}

// wantNamed checks the name and company of a call.
func wantNamed(s *fixture.Org, id, name, companyName string) {
	s.T.Helper()
	r := s.Do("GET", "/calls/"+id, nil).JSON()
	contact, _ := r["contact"].(map[string]any)
	if r["from_name"] != name || contact["name"] != name || contact["company"] != companyName {
		s.T.Errorf("the call says %v %v", r["from_name"], contact)
	}
}

// displayed reports whether the INVITE to the phone had the name as display name.
func displayed(s *fixture.Org, id, name string) bool {
	s.T.Helper()
	var trace fixture.Trace
	s.Want(200, "GET", "/calls/"+id+"/trace", nil, &trace)
	for _, m := range trace.Messages {
		if m.Sent && strings.HasPrefix(m.Text, "INVITE") {
			return strings.Contains(m.Text, "From: \""+name+"\"")
		}
	}
	s.T.Fatalf("no INVITE in %s", trace.Outline())
	return false
}

// wantScreenPop makes a known caller call, and checks that the screen pop comes before the answer. It returns the id
// of the call.
func wantScreenPop(s *fixture.Org, user rig.User, way fixture.Carrier) string {
	s.T.Helper()
	phone := s.Server.Sipp(rig.Script{Scenario: "answer", Ring: 1500, Port: s.RegisterSipp(user.SIP), From: user.SIP.Username})
	published := s.ReadStream("", func() {
		s.Server.Sipp(rig.Script{Scenario: "call", IP: way.IP, From: "+12125550178", Number: way.Number, Talk: time.Second}).Wait()
		phone.Wait()
	}, func(e fixture.StreamEvent) bool { return e.Type == "call.ended" })
	shown, answered := fixture.FirstEvent(published, "screen_pop", "Grace Hopper"), fixture.FirstEvent(published, "call.answered", "")
	if shown < 0 || answered < shown {
		s.T.Errorf("the screen pop is event %d, the answer %d of %v", shown, answered, published)
	}
	if p := fixture.ScreenPops(published, "+12125550178"); len(p) == 0 || p[0]["user_id"] != user.ID {
		s.T.Errorf("screen pops %v", p)
	}
	var calls struct {
		Data []struct{ ID, From_name string }
	}
	s.Want(200, "GET", "/calls?phone=%2B12125550178", nil, &calls)
	return calls.Data[0].ID
}

// wantLateAnswer checks that a lookup that answers after the deadline is shown too.
func wantLateAnswer(s *fixture.Org, release chan struct{}) {
	user := s.AddUser("Bob")
	way := s.AddCarrier(user.ID, nil)
	phone := s.Server.Sipp(rig.Script{Scenario: "answer", Ring: 2500, Port: s.RegisterSipp(user.SIP), From: user.SIP.Username})
	var call *rig.Sipp
	incomplete := false
	told := s.ReadStream("", func() {
		call = s.Server.Sipp(rig.Script{Scenario: "call", IP: way.IP, From: "+12125550179", Number: way.Number, Talk: time.Second})
	}, func(e fixture.StreamEvent) bool {
		if e.Type == "screen_pop" && !incomplete {
			incomplete = true
			close(release) // the system answers once the deadline has passed
		}
		return e.Type == "call.ended"
	})
	call.Wait()
	phone.Wait()
	p := fixture.ScreenPops(told, "+12125550179")
	if len(p) != 2 || p[0]["complete"] != false || p[0]["contact"] != nil || p[1]["complete"] != true || !strings.Contains(fmt.Sprint(p[1]["contact"]), "Late Larry") {
		s.T.Errorf("screen pops %v", p)
	}
	var found map[string]any
	s.Want(200, "GET", "/contacts/lookup?phone=%2B12125550179", nil, &found)
	if found["cached"] != true || found["source"] != "Hanging" || found["company"] != "Latecomers" {
		s.T.Errorf("asked again %v", found)
	}
	r := s.CDR("+12125550179")
	if got := s.Do("GET", "/calls/"+r.CallID, nil).JSON(); got["from_name"] != "Late Larry" {
		s.T.Errorf("the call is from %v", got["from_name"])
	}
}

// The screen pop finds a caller in whatever format the number is stored. The call shows the name if the match is
// certain.
func TestLookup_NumberFormats(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	written := []string{"+12125551000", "212 555 1001", "0012125551002", "(212) 555-1003", "212.555.1004 ext. 12"}
	rows := "id,name,phone\n"
	for i, w := range written {
		rows += fmt.Sprintf("%d,Caller %d,%q\n", i, i, w)
	}
	list := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, rows) }))
	defer list.Close()
	company.Want(201, "POST", "/crm/connections", map[string]any{"provider": "csv", "name": "Table", "settings": map[string]any{"url": list.URL}}, nil)
	rig.Until(t, "the table", time.Minute, func() bool { return company.Do("GET", "/contacts/lookup?phone=2125551004", nil).Status == 200 })
	user := company.AddUser("Ada")
	way := company.AddCarrier(user.ID, nil)
	port := company.RegisterSipp(user.SIP)
	for i := range written {
		from := fmt.Sprintf("+1212555100%d", i)
		phone := s.Sipp(rig.Script{Scenario: "answer", Ring: 300, Port: port, From: user.SIP.Username})
		told := company.ReadStream("", func() {
			s.Sipp(rig.Script{Scenario: "call", IP: way.IP, From: from, Number: way.Number, Talk: 100 * time.Millisecond}).Wait()
			phone.Wait()
		}, func(e fixture.StreamEvent) bool { return e.Type == "call.ended" })
		name := fmt.Sprintf("Caller %d", i)
		if p := fixture.ScreenPops(told, from); len(p) == 0 || !strings.Contains(fmt.Sprint(p[0]["contact"]), name) {
			t.Errorf("%s, written %s: %v", from, written[i], p)
		}
		got := company.Do("GET", "/calls/"+company.CDR(from).CallID, nil).JSON()["from_name"]
		if sure := i < 4; sure != (got == name) {
			t.Errorf("%s, written %s: the call is from %v", from, written[i], got)
		}
	}
}
