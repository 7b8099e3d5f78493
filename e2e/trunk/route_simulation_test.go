package trunk

import (
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// simulatedRoute is the answer of a route test.
type simulatedRoute struct {
	Number        string
	CallerID      string  `json:"caller_id"`
	TrunkID       string  `json:"trunk_id"`
	NumberID      string  `json:"number_id"`
	Destination   string  `json:"destination"`
	RefusedReason *string `json:"refused_reason"`
	Trunks        []struct {
		TrunkID string `json:"trunk_id"`
		Used    bool
		Reason  string
		Dialled string
	}
}

// TestRouteTest_SaysWhatTheCallDoes compares a route test with the call: the order of the trunks, the number shown and the number dialled
// at each.
func TestRouteTest_SaysWhatTheCallDoes(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	user := company.AddUser("Ada")
	other := company.AddCarrier("", map[string]any{"priority": 1, "prefix_rules": []map[string]any{{"match": "+1", "strip": 2, "prepend": "0"}}})
	company.AddCarrier("", map[string]any{"priority": 1, "prefix_rules": []map[string]any{{"match": "+44", "strip": 0, "prepend": ""}}})
	home := company.AddCarrier(user.ID, map[string]any{"priority": 9})
	var said simulatedRoute
	company.Want(200, "POST", "/trunks/route-test", map[string]any{"to": "(212) 555-0142", "user_id": user.ID}, &said)
	if said.RefusedReason != nil || said.TrunkID != home.Trunk || said.CallerID != home.Number || len(said.Trunks) != 3 ||
		said.Trunks[2].Used {
		t.Fatalf("the route test says %+v", said)
	}
	first := s.Sipp(rig.Script{Scenario: "refuse", Status: 503, IP: home.IP, Port: home.Port})
	second := s.Sipp(rig.Script{Scenario: "answer", IP: other.IP, Port: other.Port})
	s.Sipp(rig.Script{Scenario: "call", Login: &user.SIP, Number: "2125550142", Talk: 500 * time.Millisecond}).Wait()
	first.Wait()
	second.Wait()
	for i, invite := range []string{first.Received("INVITE ", 0), second.Received("INVITE ", 0)} {
		if !strings.HasPrefix(invite, "INVITE sip:"+said.Trunks[i].Dialled+"@") || !strings.Contains(rig.Field(invite, "P-Asserted-Identity"), said.CallerID) {
			t.Errorf("trunk %d was said to be dialled %s and shown %s, and got\n%s", i, said.Trunks[i].Dialled, said.CallerID, invite)
		}
	}
	if r := company.CDR(said.Number); r.TrunkID == nil || *r.TrunkID != said.Trunks[1].TrunkID || r.From != said.CallerID {
		t.Errorf("record: %s by trunk %v from %s", r, r.TrunkID, r.From)
	}
}

// TestRouteTest_InboundSaysWhatTheCallDoes compares a route test of an inbound call with the call.
func TestRouteTest_InboundSaysWhatTheCallDoes(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	company, stranger := fixture.NewOrg(s), fixture.NewOrg(s)
	user := company.AddUser("Ada")
	way := company.AddCarrier(user.ID, nil)
	stranger.Want(201, "POST", "/trunks", map[string]any{"name": "same carrier", "host": way.IP, "port": way.Port}, nil)
	call := map[string]any{"direction": "inbound", "to": way.Number, "source_address": way.IP}
	var said simulatedRoute
	company.Want(200, "POST", "/trunks/route-test", call, &said)
	if said.RefusedReason != nil || said.TrunkID != way.Trunk || said.Destination != "user:"+user.ID {
		t.Errorf("the route test says %+v", said)
	}
	s.Sipp(rig.Script{Scenario: "call_refused", Status: 480, IP: way.IP, From: "+12125550178", Number: way.Number}).Wait()
	if r := company.CDR("+12125550178"); r.TrunkID == nil || *r.TrunkID != said.TrunkID || r.To != said.Number {
		t.Errorf("record: %s by trunk %v to %s", r, r.TrunkID, r.To)
	}
	stranger.Want(200, "POST", "/trunks/route-test", call, &said)
	if said.RefusedReason == nil || *said.RefusedReason != "not_your_number" {
		t.Errorf("the other organisation is told %+v", said)
	}
	call["source_address"] = "192.0.2.1"
	company.Want(200, "POST", "/trunks/route-test", call, &said)
	if said.RefusedReason == nil || *said.RefusedReason != "other_trunk" {
		t.Errorf("of another address the route test says %+v", said)
	}
}
