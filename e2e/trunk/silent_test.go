package trunk

import (
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// TestFailover_SilentTrunk covers a trunk that sends no response of any kind, for a phone and for the API.
func TestFailover_SilentTrunk(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	user := company.AddUser("Ada")
	company.AddCarrier(user.ID, map[string]any{"priority": 1}) // nobody listens there
	way := company.AddCarrier(user.ID, map[string]any{"priority": 2})
	first := s.Sipp(rig.Script{Scenario: "answer", IP: way.IP, Port: way.Port})
	began := time.Now()
	s.Sipp(rig.Script{Scenario: "call", Login: &user.SIP, Number: "+12125550142", Talk: 500 * time.Millisecond}).Wait()
	if d := time.Since(began); d > 12*time.Second {
		t.Errorf("the second trunk was tried late: the call took %v", d)
	}
	first.Wait()
	if r := company.CDR("+12125550142"); r.String() != "outbound completed caller_hangup caller 0" || r.TrunkID == nil || *r.TrunkID != way.Trunk {
		t.Errorf("record: %s by trunk %v, want %s", r, r.TrunkID, way.Trunk)
	}

	tone, _ := fixture.Tone(t, 440)
	phone := s.Phone(user.SIP, rig.PhoneOptions{Say: tone, Auto: true})
	second := s.Sipp(rig.Script{Scenario: "answer", IP: way.IP, Port: way.Port})
	var made struct{ ID string }
	company.Want(201, "POST", "/calls", map[string]any{"to": "+12125550143", "user_id": user.ID, "ring_timeout_seconds": 5}, &made)
	company.LiveCall(func(c map[string]any) bool { return c["status"] == "in_progress" })
	company.Want(200, "POST", "/calls/"+made.ID+"/end", map[string]any{}, nil)
	second.Wait()
	phone.Close()
}

// TestSilentTrunk_EndsAsCarrierError covers a call whose only trunk sends no response.
func TestSilentTrunk_EndsAsCarrierError(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	user := company.AddUser("Ada")
	company.AddCarrier(user.ID, nil) // nobody listens there
	tone, _ := fixture.Tone(t, 440)
	phone := s.Phone(user.SIP, rig.PhoneOptions{Say: tone, Auto: true})
	company.Want(201, "POST", "/calls", map[string]any{"to": "+12125550142", "user_id": user.ID}, nil)
	phone.Wait("CALL_ESTABLISHED", "")
	phone.Wait("CALL_CLOSED", "")
	if r := company.CDR("+12125550142"); r.String() != "outbound failed carrier_error system 504" {
		t.Errorf("record: %s", r)
	}
}

// TestRingTime_BeginsWithRinging covers a trunk that says 100 at once and rings later.
func TestRingTime_BeginsWithRinging(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	user := company.AddUser("Ada")
	way := company.AddCarrier(user.ID, nil)
	carrier := s.Sipp(rig.Script{Scenario: "answer_slowly", IP: way.IP, Port: way.Port, Ponder: 7500, Ring: 2000})
	tone, _ := fixture.Tone(t, 440)
	phone := s.Phone(user.SIP, rig.PhoneOptions{Say: tone, Auto: true})
	var made struct{ ID string }
	company.Want(201, "POST", "/calls", map[string]any{"to": "+12125550142", "user_id": user.ID, "ring_timeout_seconds": 8}, &made)
	company.LiveCall(func(c map[string]any) bool { return c["status"] == "in_progress" })
	company.Want(200, "POST", "/calls/"+made.ID+"/end", map[string]any{}, nil)
	carrier.Wait()
	phone.Close()
}
