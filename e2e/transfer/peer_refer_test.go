package transfer

import (
	"fmt"
	"slices"
	"testing"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// TestPeerRefer_BlindTransfer covers transfers by another exchange: to an extension, and to a number that it may call.
func TestPeerRefer_BlindTransfer(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	ada, bob := company.AddUser("Ada"), company.AddUser("Bob")
	way := company.AddCarrier(ada.ID, map[string]any{"kind": "peer", "allow_refer": true})
	const second = "+12025550987"
	company.Want(201, "POST", "/numbers", map[string]any{"number": second, "trunk_id": way.Trunk, "user_id": bob.ID}, nil)
	adaPort, bobPort := company.RegisterSipp(ada.SIP), company.RegisterSipp(bob.SIP)
	for i, target := range []string{"sip:" + bob.Extension + "@" + s.SIP, "tel:" + second, "sip:" + second + "@" + s.SIP} {
		phone := s.Sipp(rig.Script{Scenario: "answer", Port: adaPort, From: ada.SIP.Username})
		callee := s.Sipp(rig.Script{Scenario: "answer", Port: bobPort, From: bob.SIP.Username})
		from := fmt.Sprint("+1212555019", i)
		s.Sipp(rig.Script{Scenario: "call_refer", IP: way.IP, From: from, Number: way.Number, Refer: target}).Wait()
		live := company.LiveCall(func(c map[string]any) bool { return c["status"] == "in_progress" })
		company.Want(200, "POST", "/calls/"+live["id"].(string)+"/end", nil, nil)
		phone.Wait()
		callee.Wait()
		if transfer, _ := live["transfer"].(map[string]any); transfer["status"] != "completed" {
			t.Errorf("%s: the transfer is %v", target, transfer)
		}
	}
}

// TestPeerRefer_Refused covers the transfers that another exchange may not make. The call goes on.
func TestPeerRefer_Refused(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	ada, bob := company.AddUser("Ada"), company.AddUser("Bob")
	port := company.RegisterSipp(ada.SIP)
	closed := company.AddCarrier(ada.ID, map[string]any{"kind": "peer"})
	open := company.AddCarrier(ada.ID, map[string]any{"kind": "peer", "allow_refer": true, "emergency_capable": true})
	for i, c := range []struct {
		name   string
		way    fixture.Carrier
		target string
		status int
	}{
		{"a trunk that does not allow it", closed, "sip:" + bob.Extension + "@" + s.SIP, 403},
		{"an address elsewhere", open, "sip:" + bob.Extension + "@203.0.113.9", 403},
		{"a mailbox", open, "sip:*97@" + s.SIP, 403},
		{"a queue by its id", open, "sip:queue%3Aque_1@" + s.SIP, 403},
		{"another country", open, "tel:+493012345678", 202},
		{"an emergency number", open, "sip:911@" + s.SIP, 202},
	} {
		phone := s.Sipp(rig.Script{Scenario: "answer", Port: port, From: ada.SIP.Username})
		from := fmt.Sprint("+1212555018", i)
		s.Sipp(rig.Script{Scenario: "call_refer", Status: c.status, IP: c.way.IP, From: from, Number: c.way.Number, Refer: c.target}).Wait()
		phone.Wait()
		r := company.CDR(from)
		if r.String() != "inbound completed caller_hangup caller 0" {
			t.Errorf("%s: record: %s", c.name, r)
		}
		if steps := company.TimelineSteps("/calls/" + r.CallID); slices.Contains(steps, "transfer.started") || !slices.Contains(steps, "leg.answered") {
			t.Errorf("%s: steps %v", c.name, steps)
		}
	}
}
