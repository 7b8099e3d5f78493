package call

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// wantLiveQuality reads the quality of both legs from the live stream until last is true.
func wantLiveQuality(o *fixture.Office, caller, callee *rig.Phone, last func(caller, agent float64) bool) {
	o.T.Helper()
	type quality struct {
		Call   string `json:"call_id"`
		Leg    string `json:"leg_id"`
		MOS    float64
		Loss   float64 `json:"loss_rate"`
		Jitter float64 `json:"jitter_ms"`
		At     time.Time
	}
	roles, newest := map[string]string{}, map[string]quality{}
	id := ""
	told := o.ReadStream("", func() {
		caller.Dial(o.Bob.Extension)
		callee.Wait("CALL_ESTABLISHED", "")
		c := o.LiveCall(func(c map[string]any) bool { return c["status"] == "in_progress" })
		id = c["id"].(string)
		for _, l := range c["legs"].([]any) {
			leg := l.(map[string]any)
			roles[leg["id"].(string)] = leg["role"].(string)
		}
	}, func(e fixture.StreamEvent) bool {
		if e.Type == "call.ended" {
			o.T.Fatal("the call ended")
		}
		if e.Type != "call.quality" {
			return false
		}
		var q quality
		if err := json.Unmarshal([]byte(e.Data), &q); err != nil || e.ID != "" || q.Call != id || roles[q.Leg] == "" {
			o.T.Fatalf("of call %s with legs %v the stream tells %+v (%v)", id, roles, e, err)
		}
		before := newest[roles[q.Leg]]
		if gap := q.At.Sub(before.At); !before.At.IsZero() && gap < 4*time.Second {
			o.T.Errorf("a leg is told of %s after the last: %+v, %+v", gap, before, q)
		}
		newest[roles[q.Leg]] = q
		return len(newest) == 2 && last(newest["caller"].MOS, newest["agent"].MOS)
	})
	o.T.Logf("of %d events the last of the caller was %+v, of the agent %+v", len(told), newest["caller"], newest["agent"])
	caller.Do("hangup", "")
	callee.Wait("CALL_CLOSED", "")
}

// TestStream_LiveQuality proves that the stream reports the quality of both legs of a good call. It does so for a call with a leg on a
// bad network.
func TestStream_LiveQuality(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	for _, c := range []struct {
		name string
		bad  bool
	}{{"good", false}, {"bad", true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			own := *s
			own.T = t
			o := &fixture.Office{Org: fixture.NewOrg(&own)}
			o.Ada, o.Bob = o.AddUser("Ada"), o.AddUser("Bob")
			options := rig.PhoneOptions{}
			if c.bad {
				options.Through = own.BadNetwork(rig.Damage{Loss: 0.25, Seed: 11})
			}
			o.AdaPhone, o.BobPhone = o.Phone(o.Ada, fixture.AdaTone, options), o.Phone(o.Bob, fixture.BobTone, rig.PhoneOptions{Auto: true})
			rounds := 0
			wantLiveQuality(o, o.AdaPhone, o.BobPhone, func(caller, agent float64) bool {
				rounds++
				switch {
				case !c.bad && (caller < 3.5 || agent < 3.5), c.bad && (caller > 3.3 || agent < 3.5):
					t.Errorf("MOS of the caller %.2f, of the agent %.2f", caller, agent)
				}
				return rounds > 2
			})
		})
	}
}

// TestStream_CallProgress follows telephones that register, ring, are held and resumed, and send a digit.
func TestStream_CallProgress(t *testing.T) {
	t.Parallel()
	rig.Either(t, rig.Options{Env: fixture.NoSpeech}, func(t *testing.T, s *rig.Server) {
		o := &fixture.Office{Org: fixture.NewOrg(s)}
		o.Ada, o.Bob = o.AddUser("Ada"), o.AddUser("Bob")
		call := ""
		told := o.ReadStream("", func() {
			o.AdaPhone, o.BobPhone = o.Phone(o.Ada, fixture.AdaTone, rig.PhoneOptions{}),
				o.Phone(o.Bob, fixture.BobTone, rig.PhoneOptions{})
			o.AdaPhone.Do("dial", o.Bob.Extension)
			o.BobPhone.Wait("CALL_INCOMING", "")
			o.LiveCall(func(c map[string]any) bool {
				call = c["id"].(string)
				return c["status"] == "ringing"
			})
			o.BobPhone.Do("accept", "")
			o.AdaPhone.Wait("CALL_ESTABLISHED", "")
			o.LiveCall(func(c map[string]any) bool { return c["status"] == "in_progress" })
			o.BobPhone.Do("hold", "")
			o.LiveCall(func(c map[string]any) bool { return c["status"] == "on_hold" })
			o.BobPhone.Do("resume", "")
			o.LiveCall(func(c map[string]any) bool { return c["status"] == "in_progress" })
			o.Want(200, "POST", "/calls/"+call+"/hold", map[string]any{}, nil)
			o.Want(200, "POST", "/calls/"+call+"/unhold", map[string]any{}, nil)
			o.AdaPhone.Do("sndcode", "5")
			o.BobPhone.Wait("CALL_DTMF_START", "5")
			o.AdaPhone.Do("hangup", "")
		}, func(e fixture.StreamEvent) bool { return e.Type == "call.ended" })
		after := 0
		for _, want := range []struct{ kind, holds string }{
			{"device.registration", `"user_id":"` + o.Ada.ID}, {"device.registration", `"user_id":"` + o.Bob.ID},
			{"call.started", ""}, {"call.ringing", `"user_id":"` + o.Bob.ID}, {"call.answered", ""},
			{"call.held", `"held_by":"peer"`}, {"call.unheld", `"held_by":"peer"`}, {"call.held", `"held_by":"api"`}, {"call.unheld", `"held_by":"api"`},
			{"call.dtmf", `"digit":"5"`}, {"call.ended", ""},
		} {
			n := fixture.FirstEvent(told[after:], want.kind, want.holds)
			if n < 0 {
				t.Fatalf("no %s with %s behind event %d of %v", want.kind, want.holds, after, told)
			}
			e := told[after+n]
			if e.ID == "" || strings.HasPrefix(want.kind, "call.") && !strings.Contains(e.Data, call) || want.kind == "device.registration" && !strings.Contains(e.Data, `"status":"registered"`) {
				t.Errorf("the stream tells %+v of call %s", e, call)
			}
			after += n + 1
		}
	})
}
