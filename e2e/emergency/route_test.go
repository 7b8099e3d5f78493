package emergency

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

func TestEmergency_MarkedTrunksOnly(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	user := company.AddUser("Ada")
	hers := company.AddCarrier(user.ID, map[string]any{"priority": 1}).Number
	way := company.AddCarrier("", map[string]any{"priority": 9, "emergency_capable": true})
	company.Want(200, "PATCH", "/organization", map[string]any{"outbound": map[string]any{"enabled": false}, "emergency": map[string]any{
		"location": map[string]any{"country": "US", "region": "NY", "city": "New York", "street": "Bond <St>", "house_number": "5", "floor": "3"}}}, nil)
	carrier := s.Sipp(rig.Script{Scenario: "answer", IP: way.IP, Port: way.Port})
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
	r := company.CDR("911")
	if r.String() != "outbound completed caller_hangup caller 0" {
		t.Errorf("record: %s", r)
	}
	told := firstStreamed(company, "emergency.call_placed")
	for _, part := range []string{r.CallID, `"number":"911"`, `"callback_number":"` + hers, "Bond <St> 5, floor 3"} {
		if !strings.Contains(told, part) {
			t.Errorf("the stream is told %s, without %s", told, part)
		}
	}
}

// firstStreamed returns the data of the first event of a type in the live stream.
func firstStreamed(s *fixture.Org, kind string) string {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(s.T.Context(), limit.Hang(0))
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

func TestEmergency_PreemptsChannel(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	user := company.AddUser("Ada")
	way := company.AddCarrier(user.ID, map[string]any{"max_channels": 1, "emergency_capable": true})
	carrier := s.Sipp(rig.Script{Scenario: "answer", IP: way.IP, Port: way.Port, Calls: 2})
	chat := s.Sipp(rig.Script{Scenario: "call_until_bye", Login: &user.SIP, Number: "+12125550142"})
	company.LiveCall(func(c map[string]any) bool { return c["status"] == "in_progress" })
	s.Sipp(rig.Script{Scenario: "call", Login: &user.SIP, Number: "911", Talk: 500 * time.Millisecond}).Wait()
	chat.Wait()
	carrier.Wait()
	if r := company.CDR("911"); r.String() != "outbound completed caller_hangup caller 0" {
		t.Errorf("the emergency call: %s", r)
	}
	if r := company.CDR("+12125550142"); r.EndReason != "blocked" || r.HangupBy != "system" {
		t.Errorf("the call that made room: %s", r)
	}
}
