package call

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

func TestHold_SDPDirections(t *testing.T) {
	t.Parallel()
	rig.Either(t, rig.Options{Env: fixture.NoSpeech}, func(t *testing.T, s *rig.Server) {
		for _, c := range []struct{ name, asked, agreed string }{
			{"with music", "sendonly", "recvonly"},
			{"in silence", "inactive", "inactive"},
		} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				own := *s
				own.T = t
				holdFromCarrier(fixture.NewOrg(&own), c.asked, c.agreed)
			})
		}
	})
}

// holdFromCarrier makes a carrier hold a telephone for three seconds. The telephone accepts, but keeps sending audio.
func holdFromCarrier(s *fixture.Org, asked, agreed string) {
	user := s.AddUser("Ada")
	way := s.AddCarrier(user.ID, nil)
	_, low := fixture.Tone(s.T, 440)
	_, high := fixture.Tone(s.T, 1000)
	callee := s.Server.Sipp(rig.Script{Scenario: "answer_held", Port: s.RegisterSipp(user.SIP), From: user.SIP.Username, Hold: agreed,
		Play: high})
	caller := s.Server.Sipp(rig.Script{Scenario: "call_hold", IP: way.IP, From: "+12125550177", Number: way.Number, Hold: asked, Play: low,
		Talk: 3 * time.Second})

	held := s.LiveCall(func(c map[string]any) bool { return c["status"] == "on_hold" })
	if held["held"] != true || held["held_since"] == nil {
		s.T.Errorf("held call: %v", held)
	}
	for _, l := range held["legs"].([]any) {
		leg := l.(map[string]any)
		status, by := any("answered"), any(nil)
		if leg["role"] == "caller" {
			status, by = "held", "peer"
		}
		if leg["status"] != status || leg["held_by"] != by {
			s.T.Errorf("leg of the %v while held: %v by %v", leg["role"], leg["status"], leg["held_by"])
		}
	}
	back := s.LiveCall(func(c map[string]any) bool { return c["status"] == "in_progress" })
	if back["held"] != false || back["held_since"] != nil {
		s.T.Errorf("call after the hold: %v", back)
	}
	caller.Wait()
	callee.Wait()
	wantDirections(s, caller, callee, asked, agreed)

	r := s.CDR("+12125550177")
	if r.String() != "inbound completed caller_hangup caller 0" || r.Hold != 3 || r.Talk < 2 || r.Talk > 4 {
		s.T.Errorf("record: %s, held for %d s, talked for %d s; want 3 s each", r, r.Hold, r.Talk)
	}
	both := s.RecordingAudio(s.Recording(r.CallID).ID, "").PCM
	fixture.Hears(s.T, "the right channel", both[1], 1000, 2*time.Second)
	fixture.HearsNot(s.T, "the right channel, the telephone being held,", both[1], 1000, 3500*time.Millisecond)
	fixture.Hears(s.T, "the left channel", both[0], 440, 2*time.Second)
	if asked == "inactive" {
		fixture.HearsNot(s.T, "the left channel, the call being inactive,", both[0], 440, 3500*time.Millisecond)
	}
}

// direction matches the direction of a media description.
var direction = regexp.MustCompile(`a=(sendrecv|sendonly|recvonly|inactive)`)

// wantDirections checks the media directions in the first INVITE and the two after it, on each side.
func wantDirections(s *fixture.Org, caller, callee *rig.Sipp, asked, agreed string) {
	s.T.Helper()
	var offers, answers []string
	for n := range 3 {
		offers = append(offers, direction.FindString(callee.Received("INVITE ", n)))
	}
	for _, m := range caller.Messages() {
		if m.Received && strings.HasPrefix(m.Text, "SIP/2.0 200") && strings.Contains(m.Text, "m=audio") {
			answers = append(answers, direction.FindString(m.Text))
		}
	}
	if got, want := strings.Join(offers, " "), "a=sendrecv a="+asked+" a=sendrecv"; got != want {
		s.T.Errorf("the held side was offered %s; want %s", got, want)
	}
	if got, want := strings.Join(answers, " "), "a=sendrecv a="+agreed+" a=sendrecv"; got != want {
		s.T.Errorf("the holding side was answered %s; want %s", got, want)
	}
}

// TestHold_FromPhone proves that the other side of a call of two hears music while a phone holds, and the phone again afterwards.
//
// https://github.com/twilio/voice-quickstart-android/issues/390
func TestHold_FromPhone(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	office := fixture.NewOrg(s)
	ada, bob := office.AddUser("Ada"), office.AddUser("Bob")
	low, _ := fixture.Tone(t, 440)
	high, _ := fixture.Tone(t, 1000)
	caller := s.Phone(ada.SIP, rig.PhoneOptions{Say: low})
	callee := s.Phone(bob.SIP, rig.PhoneOptions{Say: high, Auto: true})
	caller.Dial(bob.Extension)
	caller.Listen(2 * time.Second)
	callee.Do("hold", "")
	held := office.LiveCall(func(c map[string]any) bool { return c["status"] == "on_hold" })
	for _, l := range held["legs"].([]any) {
		if leg := l.(map[string]any); (leg["held_by"] == "peer") != (leg["role"] == "agent") {
			t.Errorf("leg of the %v is held by %v", leg["role"], leg["held_by"])
		}
	}
	office.HearsMusic("Ada, held,", caller)
	callee.Do("resume", "")
	office.LiveCall(func(c map[string]any) bool { return c["status"] == "in_progress" })
	fixture.Hears(t, "Ada, resumed,", caller.Since(caller.Mark(), 1500*time.Millisecond), 1000, time.Second)
	fixture.LetCallRun(t, 2*time.Second)
	callee.Do("hold", "") // and hung up while held
	office.LiveCall(func(c map[string]any) bool { return c["status"] == "on_hold" })
	caller.Do("hangup", "")
	callee.Wait("CALL_CLOSED", "")
	r := office.CDR(ada.Extension)
	if r.String() != "internal completed caller_hangup caller 0" || r.Hold < 3 || r.Talk < 4 {
		t.Errorf("record: %s, held for %d s, talked for %d s", r, r.Hold, r.Talk)
	}
	// A telephone records received audio only until it is first held, so the test examines the server's recording.
	both := office.RecordingAudio(office.Recording(r.CallID).ID, "").PCM
	fixture.Hears(t, "Bob", both[0], 440, 3500*time.Millisecond)
	// 3 s or more were on hold by the server's clock. On a busy machine the telephone sent less audio meanwhile.
	fixture.HearsNot(t, "Bob, holding,", both[0], 440, fixture.SampleDuration(len(both[0]))-1500*time.Millisecond)
}

func TestHold_RefusedByPhone(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	user := company.AddUser("Ada")
	way := company.AddCarrier(user.ID, nil)
	_, low := fixture.Tone(t, 440)
	_, high := fixture.Tone(t, 1000)
	callee := s.Sipp(rig.Script{Scenario: "answer_refuses_hold", Status: 404, Port: company.RegisterSipp(user.SIP), From: user.SIP.Username,
		Play: high})
	s.Sipp(rig.Script{Scenario: "call_hold_refused", IP: way.IP, From: "+12125550177", Number: way.Number, Play: low,
		Talk: 2 * time.Second}).Wait()
	callee.Wait()
	r := company.CDR("+12125550177")
	if r.String() != "inbound completed caller_hangup caller 0" || r.Hold != 0 {
		t.Errorf("record: %s, held for %d s", r, r.Hold)
	}
	both := company.RecordingAudio(company.Recording(r.CallID).ID, "").PCM
	fixture.Hears(t, "the left channel", both[0], 440, 2*time.Second)
	fixture.Hears(t, "the right channel", both[1], 1000, 2*time.Second)
}

func TestHold_BothSides(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	office := fixture.NewOrg(s)
	ada, bob := office.AddUser("Ada"), office.AddUser("Bob")
	low, _ := fixture.Tone(t, 440)
	caller := s.Phone(ada.SIP, rig.PhoneOptions{Say: low})
	callee := s.Phone(bob.SIP, rig.PhoneOptions{Say: low, Auto: true})
	caller.Dial(bob.Extension)
	caller.Listen(500 * time.Millisecond)
	for _, step := range []struct {
		who    *rig.Phone
		what   string
		status string
		held   string // roles of the legs held
	}{
		{caller, "hold", "on_hold", "caller"},
		{callee, "hold", "on_hold", "caller agent"},
		{caller, "resume", "on_hold", "agent"},
		{callee, "resume", "in_progress", ""},
	} {
		step.who.Do(step.what, "")
		office.LiveCall(func(c map[string]any) bool { return heldLegs(c) == step.held })
		if c := office.LiveCall(nil); c["status"] != step.status {
			t.Errorf("the call is %v while these legs are held: %q", c["status"], step.held)
		}
	}
	caller.Do("hangup", "")
	callee.Wait("CALL_CLOSED", "")
}

// heldLegs returns the roles of the legs that hold, the caller first.
func heldLegs(c map[string]any) string {
	var roles []string
	for _, l := range c["legs"].([]any) {
		if leg := l.(map[string]any); leg["status"] == "held" {
			roles = append(roles, leg["role"].(string))
		}
	}
	return strings.Join(roles, " ")
}
