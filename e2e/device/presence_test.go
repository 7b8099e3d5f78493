package device

import (
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// TestPresence_RegistrationAndCalls checks the presence in the API while two telephones register and talk.
func TestPresence_RegistrationAndCalls(t *testing.T) {
	t.Parallel()
	rig.Either(t, rig.Options{}, func(t *testing.T, s *rig.Server) {
		c := s.Org("live")
		ada, bob := c.AddUser("Ada"), c.AddUser("Bob")
		var queue struct{ ID string }
		c.Want(201, "POST", "/queues", map[string]any{"name": "Support"}, &queue)
		c.Want(201, "POST", "/queues/"+queue.ID+"/members", map[string]any{"user_id": bob.ID}, nil)
		if p := fixture.GetAgent(c, bob.ID); p.String() != "offline" {
			t.Errorf("without a phone bob is %s", p)
		}
		low, _ := fixture.Tone(t, 440)
		one, two := s.Phone(ada.SIP, rig.PhoneOptions{Say: low}), s.Phone(bob.SIP, rig.PhoneOptions{Say: low})
		if p := fixture.GetAgent(c, bob.ID); p.String() != "available" || p.Devices != 1 {
			t.Errorf("with a phone bob is %s", p)
		}
		free := func(want int) bool {
			var stats struct {
				Available int `json:"agents_available"`
			}
			c.Want(200, "GET", "/queues/"+queue.ID+"/stats", nil, &stats)
			return stats.Available == want
		}
		if !free(1) {
			t.Error("the queue has nobody free")
		}
		one.Do("dial", bob.Extension)
		two.Wait("CALL_INCOMING", "")
		rig.Until(t, "bob rings", 20*time.Second, func() bool {
			return fixture.GetAgent(c, bob.ID).String() == "ringing" && fixture.GetAgent(c, ada.ID).String() == "busy"
		})
		two.Do("accept", "")
		rig.Until(t, "both are busy", 20*time.Second, func() bool {
			a, b := fixture.GetAgent(c, ada.ID), fixture.GetAgent(c, bob.ID)
			return a.String() == "busy" && b.String() == "busy" && a.Call != "" && a.Call == b.Call && free(0)
		})
		one.Do("hangup", "")
		rig.Until(t, "both are free", 20*time.Second, func() bool {
			return fixture.GetAgent(c, ada.ID).String() == "available" && fixture.GetAgent(c, bob.ID).String() == "available" && free(1)
		})
	})
}

// presenceEvent is an event with the presence of an agent in the live stream.
type presenceEvent struct {
	Agent string `json:"agent_id"`
	currentPresence
	Call string `json:"active_call_id"`
}

// currentPresence is the presence of an agent in the API.
type currentPresence struct {
	Status string
	Reason string
	Since  time.Time
	Until  *time.Time
}

// presenceWatch follows the presence of agents in the live stream.
type presenceWatch struct {
	*fixture.Org
	*fixture.EventStream
	told map[string][]presenceEvent // and was not asked for yet, by agent
}

// watchPresence opens the live stream.
func watchPresence(s *fixture.Org) *presenceWatch {
	return &presenceWatch{s, s.OpenStream("", "agent.presence"), map[string][]presenceEvent{}}
}

// next waits for the next presence of an agent.
func (w *presenceWatch) next(u rig.User) presenceEvent {
	w.T.Helper()
	for len(w.told[u.ID]) == 0 {
		p := fixture.NextEventData[presenceEvent](w.EventStream)
		w.told[p.Agent] = append(w.told[p.Agent], p)
	}
	p := w.told[u.ID][0]
	w.told[u.ID] = w.told[u.ID][1:]
	return p
}

// want fails unless the next presence of an agent is this, with this call and reason, in the stream and the API.
func (w *presenceWatch) want(u rig.User, status, call, reason string) presenceEvent {
	w.T.Helper()
	p := w.next(u)
	if p.Status != status || p.Call != call || p.Reason != reason {
		w.T.Fatalf("%s is told as %s, call %q, reason %q; want %s, %q, %q", u.Name, p.Status, p.Call, p.Reason, status, call, reason)
	}
	var shown struct {
		Presence currentPresence
		Call     string `json:"active_call_id"`
	}
	w.Want(200, "GET", "/agents/"+u.ID, nil, &shown)
	a, b := p.currentPresence, shown.Presence
	sameEnd := a.Until == nil && b.Until == nil || a.Until != nil && b.Until != nil && a.Until.Equal(*b.Until)
	if a.Status != b.Status || a.Reason != b.Reason || !a.Since.Equal(b.Since) || !sameEnd || status == "busy" && shown.Call != call {
		w.T.Errorf("%s is told as %+v, and shown as %+v", u.Name, p, shown)
	}
	return p
}

// TestPresence_Streamed checks the presence events of telephones that register, call and unregister, and of presence
// that users choose.
func TestPresence_Streamed(t *testing.T) {
	t.Parallel()
	rig.Either(t, rig.Options{Env: fixture.NoSpeech}, func(t *testing.T, s *rig.Server) {
		o, other := &fixture.Office{Org: fixture.NewOrg(s)}, fixture.NewOrg(s)
		o.Ada, o.Bob = o.AddUser("Ada"), o.AddUser("Bob")
		eve, _ := other.AddUser("Eve"), other.AddUser("Fay") // so that the next event of either organisation has the same number
		w, elsewhere := watchPresence(o.Org), watchPresence(other)
		o.AdaPhone = o.Phone(o.Ada, fixture.AdaTone, rig.PhoneOptions{})
		w.want(o.Ada, "available", "", "")
		o.BobPhone = o.Phone(o.Bob, fixture.BobTone, rig.PhoneOptions{})
		began := w.want(o.Bob, "available", "", "").Since
		wantUnanswered(o, w)
		wantAwayAfterCall(o, w)
		for _, choice := range []string{"dnd", "offline", "available"} {
			o.SetPresence(o.Bob, choice)
			w.want(o.Bob, choice, "", "")
		}
		o.BobPhone.Close()
		if gone := w.want(o.Bob, "offline", "", ""); !gone.Since.After(began) {
			t.Errorf("bob came at %s, and is gone since %s", began, gone.Since)
		}
		other.RegisterSipp(eve.SIP)
		elsewhere.want(eve, "available", "", "")
		if len(elsewhere.told) != 1 {
			t.Errorf("another organisation is told %v", elsewhere.told)
		}
	})
}

// ringBob makes Ada call Bob, and returns the call.
func ringBob(o *fixture.Office, w *presenceWatch) (call string) {
	o.T.Helper()
	o.AdaPhone.Do("dial", o.Bob.Extension)
	o.BobPhone.Wait("CALL_INCOMING", "")
	call = o.LiveCall(nil)["id"].(string)
	w.want(o.Ada, "busy", call, "")
	w.want(o.Bob, "ringing", call, "")
	return call
}

// wantUnanswered makes Ada call Bob and hang up before an answer.
func wantUnanswered(o *fixture.Office, w *presenceWatch) {
	o.T.Helper()
	ringBob(o, w)
	o.AdaPhone.Do("hangup", "")
	w.want(o.Ada, "available", "", "")
	w.want(o.Bob, "available", "", "")
}

// wantAwayAfterCall connects Bob and Ada. During the call Bob chooses to be away afterwards.
func wantAwayAfterCall(o *fixture.Office, w *presenceWatch) {
	o.T.Helper()
	call := ringBob(o, w)
	o.BobPhone.Do("accept", "")
	w.want(o.Bob, "busy", call, "")
	until := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	o.Want(200, "PUT", "/agents/"+o.Bob.ID+"/presence", map[string]any{"status": "away", "reason": "lunch", "until": until}, nil)
	o.BobPhone.Do("hangup", "")
	if p := w.want(o.Bob, "away", "", "lunch"); p.Until == nil || !p.Until.Equal(until) {
		o.T.Errorf("bob is away until %v; want %s", p.Until, until)
	}
	w.want(o.Ada, "available", "", "")
}
