package e2e

import (
	"bufio"
	"context"
	"crypto/md5"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"soniq/e2e/rig"
)

func TestNumbersLeaveInE164WithTheCallersNumber(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	for _, c := range []struct{ mode, field string }{
		{"pai", "P-Asserted-Identity"}, {"rpid", "Remote-Party-ID"}, {"from", "From"},
	} {
		t.Run(c.mode, func(t *testing.T) {
			own := *s
			own.T = t
			company := newSite(&own)
			user := company.AddUser("Ada")
			way := company.carrier(user.ID, map[string]any{"caller_id_mode": c.mode, "from_domain": "us.example"})
			carrier := own.Sipp(rig.Script{Scenario: "answer", IP: way.ip, Port: way.port})
			own.Sipp(rig.Script{Scenario: "call", Login: &user.SIP, Number: "2125550142", Talk: 500 * time.Millisecond}).Wait()
			carrier.Wait()
			invite := carrier.Received("INVITE ", 0)
			if want := "INVITE sip:+12125550142@"; !strings.HasPrefix(invite, want) {
				t.Errorf("the carrier got %s", head(invite))
			}
			if shown := rig.Field(invite, c.field); !strings.Contains(shown, way.number) || !strings.Contains(shown, "us.example") {
				t.Errorf("%s: %q does not show %s", c.field, shown, way.number)
			}
			if strings.Contains(invite, user.SIP.Username) {
				t.Errorf("the carrier is told the user name of the phone:\n%s", invite)
			}
			if r := company.record("+12125550142"); r.From != way.number {
				t.Errorf("record is from %s", r.From)
			}
		})
	}
}

func head(message string) string {
	line, _, _ := strings.Cut(message, "\n")
	return line
}

func TestWhatMayNotLeaveIsRefusedInPlainWords(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	company := newSite(s)
	user := company.AddUser("Ada")
	company.carrier(user.ID, nil)
	for _, c := range []struct {
		name, number, words, record string
		status                      int
	}{
		{"another country", "+493012345678", "country", "outbound failed blocked system 403", 403},
		{"a costly number", "+19005550142", "number", "outbound failed blocked system 403", 403},
		{"no number", "5555", "number", "outbound failed invalid_number system 404", 404},
		{"an emergency number without a trunk for it", "911", "mobile", "outbound failed no_route system 503", 503},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			own := company.in(t)
			run := own.Server.Sipp(rig.Script{Scenario: "call_refused", Login: &user.SIP, Number: c.number, Status: c.status})
			run.Wait()
			final := head(run.Received("SIP/2.0 "+"4", 1-c.status/500)) // the first 4xx is the challenge
			if c.status >= 500 {
				final = head(run.Received("SIP/2.0 5", 0))
			}
			if !strings.Contains(strings.ToLower(final), c.words) {
				t.Errorf("refused with %q, which does not say %q", final, c.words)
			}
			if r := own.record(c.number); r.String() != c.record {
				t.Errorf("record: %s; want %s", r, c.record)
			}
		})
	}
}

func TestACountryThatIsAllowedCanBeCalled(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	company := newSite(s)
	user := company.AddUser("Ada")
	way := company.carrier(user.ID, nil)
	company.Want(200, "PATCH", "/organization", map[string]any{"outbound": map[string]any{"allowed_countries": []string{"US", "DE"}}}, nil)
	carrier := s.Sipp(rig.Script{Scenario: "answer", IP: way.ip, Port: way.port})
	s.Sipp(rig.Script{Scenario: "call", Login: &user.SIP, Number: "011493012345678", Talk: 500 * time.Millisecond}).Wait()
	carrier.Wait()
	if r := company.record("+493012345678"); r.String() != "outbound completed caller_hangup caller 0" {
		t.Errorf("record: %s", r)
	}
}

func TestEmergencyCallsGoOnlyToTrunksMarkedForThem(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	company := newSite(s)
	user := company.AddUser("Ada")
	hers := company.carrier(user.ID, map[string]any{"priority": 1}).number
	way := company.carrier("", map[string]any{"priority": 9, "emergency_capable": true})
	company.Want(200, "PATCH", "/organization", map[string]any{"outbound": map[string]any{"enabled": false}, "emergency": map[string]any{
		"location": map[string]any{"country": "US", "region": "NY", "city": "New York", "street": "Bond <St>", "house_number": "5", "floor": "3"}}}, nil)
	carrier := s.Sipp(rig.Script{Scenario: "answer", IP: way.ip, Port: way.port})
	s.Sipp(rig.Script{Scenario: "call", Login: &user.SIP, Number: "9911", Talk: 500 * time.Millisecond}).Wait()
	carrier.Wait()
	invite := carrier.Received("INVITE ", 0)
	if !strings.HasPrefix(invite, "INVITE sip:911@") || !strings.Contains(rig.Field(invite, "P-Asserted-Identity"), hers) {
		t.Errorf("the carrier got %s", invite)
	}
	for _, part := range []string{"Geolocation: <cid:location@", "Content-Type: application/pidf+xml", "<ca:A3>New York</ca:A3>",
		"<ca:RD>Bond &lt;St&gt;</ca:RD>", "<ca:FLR>3</ca:FLR>", "Content-Type: application/sdp", "m=audio "} {
		if !strings.Contains(invite, part) {
			t.Errorf("the carrier is not told %q:\n%s", part, invite)
		}
	}
	r := company.record("911")
	if r.String() != "outbound completed caller_hangup caller 0" {
		t.Errorf("record: %s", r)
	}
	told := company.streamed("emergency.call_placed")
	for _, part := range []string{r.CallID, `"number":"911"`, `"callback_number":"` + hers, "Bond <St> 5, floor 3"} {
		if !strings.Contains(told, part) {
			t.Errorf("the stream is told %s, without %s", told, part)
		}
	}
}

// streamed is the data of the first event of a kind on the live stream.
func (s *site) streamed(kind string) string {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(s.T.Context(), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", "http://"+s.Server.HTTP+s.Prefix+"/events/stream?after_sequence=0&events="+kind, nil)
	if err != nil {
		s.T.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.Key)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.T.Fatal(err)
	}
	defer answer.Body.Close()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			return data
		}
	}
	s.T.Fatalf("no %s on the stream (%d)", kind, answer.StatusCode)
	return ""
}

func TestAnEmergencyCallGetsTheOnlyChannel(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	company := newSite(s)
	user := company.AddUser("Ada")
	way := company.carrier(user.ID, map[string]any{"max_channels": 1, "emergency_capable": true})
	carrier := s.Sipp(rig.Script{Scenario: "answer", IP: way.ip, Port: way.port, Calls: 2})
	chat := s.Sipp(rig.Script{Scenario: "call_until_bye", Login: &user.SIP, Number: "+12125550142"})
	company.live(func(c map[string]any) bool { return c["status"] == "in_progress" })
	s.Sipp(rig.Script{Scenario: "call", Login: &user.SIP, Number: "911", Talk: 500 * time.Millisecond}).Wait()
	chat.Wait()
	carrier.Wait()
	if r := company.record("911"); r.String() != "outbound completed caller_hangup caller 0" {
		t.Errorf("the emergency call: %s", r)
	}
	if r := company.record("+12125550142"); r.EndReason != "blocked" || r.HangupBy != "system" {
		t.Errorf("the call that made room: %s", r)
	}
}

func TestTheOperatorStopsOutboundCalls(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	company := newSite(s)
	user := company.AddUser("Ada")
	way := company.carrier(user.ID, nil)
	carrier := s.Sipp(rig.Script{Scenario: "answer", IP: way.ip, Port: way.port})
	chat := s.Sipp(rig.Script{Scenario: "call_until_bye", Login: &user.SIP, Number: "+12125550142"})
	company.live(func(c map[string]any) bool { return c["status"] == "in_progress" })
	if said := s.Command("outbound", "stop", "--calls"); !strings.Contains(said, "1 call(s) were ended") {
		t.Errorf("soniq outbound stop: %s", said)
	}
	chat.Wait()
	carrier.Wait()
	s.Sipp(rig.Script{Scenario: "call_refused", Status: 403, Login: &user.SIP, Number: "+12125550143"}).Wait()
}

func TestTheNextTrunkIsTriedWhereOneFails(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	company := newSite(s)
	user := company.AddUser("Ada")
	broken := company.carrier(user.ID, map[string]any{"priority": 1})
	way := company.carrier(user.ID, map[string]any{"priority": 2})
	first := s.Sipp(rig.Script{Scenario: "refuse", Status: 503, IP: broken.ip, Port: broken.port})
	second := s.Sipp(rig.Script{Scenario: "answer", IP: way.ip, Port: way.port})
	s.Sipp(rig.Script{Scenario: "call", Login: &user.SIP, Number: "+12125550142", Talk: 500 * time.Millisecond}).Wait()
	first.Wait()
	second.Wait()
	if r := company.record("+12125550142"); r.String() != "outbound completed caller_hangup caller 0" || r.TrunkID == nil || *r.TrunkID != way.trunk {
		t.Errorf("record: %s by trunk %v, want %s", r, r.TrunkID, way.trunk)
	}
}

func TestACarrierThatAsksWhoCallsIsTold(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	company := newSite(s)
	user := company.AddUser("Ada")
	login := rig.Login{Username: "customer-7", Password: "what the carrier gave us"}
	way := company.carrier(user.ID, map[string]any{"username": login.Username, "password": login.Password})
	carrier := s.Sipp(rig.Script{Scenario: "answer_after_challenge", IP: way.ip, Port: way.port})
	s.Sipp(rig.Script{Scenario: "call", Login: &user.SIP, Number: "+12125550142", Talk: 500 * time.Millisecond}).Wait()
	carrier.Wait()
	answer := parameters(rig.Field(carrier.Received("INVITE ", 1), "Proxy-Authorization"))
	hash := func(text string) string { return fmt.Sprintf("%x", md5.Sum([]byte(text))) }
	want := hash(strings.Join([]string{hash(login.Username + ":carrier.example:" + login.Password), answer["nonce"], answer["nc"],
		answer["cnonce"], "auth", hash("INVITE:" + answer["uri"])}, ":"))
	if answer["username"] != login.Username || answer["response"] != want {
		t.Errorf("the carrier was answered %v, want the response %s", answer, want)
	}
	if r := company.record("+12125550142"); r.String() != "outbound completed caller_hangup caller 0" {
		t.Errorf("record: %s", r)
	}
}

var parameter = regexp.MustCompile(`(\w+)="?([^",]*)"?`)

// parameters reads what Digest says (RFC 7616 3.4).
func parameters(header string) map[string]string {
	all := map[string]string{}
	for _, m := range parameter.FindAllStringSubmatch(header, -1) {
		all[m[1]] = m[2]
	}
	return all
}

func TestACarrierIsReachedByTCP(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	company := newSite(s)
	user := company.AddUser("Ada")
	way := company.carrier(user.ID, map[string]any{"transport": "tcp"})
	carrier := s.Sipp(rig.Script{Scenario: "answer", IP: way.ip, Port: way.port, TCP: true})
	s.Sipp(rig.Script{Scenario: "call", Login: &user.SIP, Number: "+12125550142", Talk: 500 * time.Millisecond}).Wait()
	carrier.Wait()
	if r := company.record("+12125550142"); r.String() != "outbound completed caller_hangup caller 0" {
		t.Errorf("record: %s", r)
	}
}

func TestATrunkCarriesNoMoreCallsThanItHasChannels(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	company := newSite(s)
	user := company.AddUser("Ada")
	way := company.carrier(user.ID, map[string]any{"max_channels": 1})
	for n := range 2 { // the second time shows that the channel was given back
		carrier := s.Sipp(rig.Script{Scenario: "answer", IP: way.ip, Port: way.port})
		first := s.Sipp(rig.Script{Scenario: "call", Login: &user.SIP, Number: fmt.Sprintf("+1212555014%d", n), Talk: 2 * time.Second})
		company.live(func(c map[string]any) bool { return c["status"] == "in_progress" })
		s.Sipp(rig.Script{Scenario: "call_refused", Status: 503, Login: &user.SIP, Number: fmt.Sprintf("+1212555015%d", n)}).Wait()
		first.Wait()
		carrier.Wait()
	}
}

func TestWhoCallsIsWrittenAsTheNumberItIs(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	for _, c := range []struct {
		name, from string
		headers    []string
		want       string
	}{
		{"a national number", "2125550166", nil, "+12125550166"},
		{"a number without its plus", "12125550167", nil, "+12125550167"},
		{"another country's", "+493012345678", nil, "+493012345678"},
		{"the carrier's word before the caller's", "+12125550168",
			[]string{`P-Asserted-Identity: "Jane Roe" <sip:+12125550169@carrier.example>`}, "+12125550169"},
		{"withheld", "anonymous", nil, "anonymous"},
		{"withheld by the carrier's word", "+12125550170",
			[]string{"P-Asserted-Identity: <sip:+12125550170@carrier.example>", "Privacy: id"}, "anonymous"},
		{"no number", "front.desk", nil, "front.desk"},
	} {
		t.Run(c.name, func(t *testing.T) {
			own := *s
			own.T = t
			company := newSite(&own)
			way := company.carrier(company.AddUser("Ada").ID, nil)
			own.Sipp(rig.Script{Scenario: "call_refused", Status: 480, IP: way.ip, From: c.from, Number: way.number, Headers: c.headers}).Wait()
			if r := company.records(1, "")[0]; r.From != c.want {
				t.Errorf("record is from %q, want %q", r.From, c.want)
			}
		})
	}
}

func TestOneCarrierServesTwoOrganisations(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	first, second := newSite(s), newSite(s)
	way := first.carrier(first.AddUser("Ada").ID, nil)
	var trunk struct{ ID string }
	second.Want(201, "POST", "/trunks", map[string]any{"name": "same carrier", "host": way.ip, "port": way.port}, &trunk)
	user := second.AddUser("Bob")
	second.Want(201, "POST", "/numbers", map[string]any{"number": "+12025559876", "trunk_id": trunk.ID, "user_id": user.ID}, nil)
	callee := s.Sipp(rig.Script{Scenario: "answer", Port: second.sippPhone(user.SIP), From: user.SIP.Username})
	s.Sipp(rig.Script{Scenario: "call", IP: way.ip, From: "+12125550177", Number: "+12025559876", Talk: 500 * time.Millisecond}).Wait()
	callee.Wait()
	if r := second.record("+12125550177"); r.String() != "inbound completed caller_hangup caller 0" || r.TrunkID == nil || *r.TrunkID != trunk.ID {
		t.Errorf("record: %s by trunk %v, want %s", r, *r.TrunkID, trunk.ID)
	}
	var page struct{ Data []cdr }
	if first.Want(200, "GET", "/cdr", nil, &page); len(page.Data) != 0 {
		t.Errorf("the other organisation has records: %v", page.Data)
	}
}
