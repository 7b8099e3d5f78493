package e2e

import (
	"encoding/json"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// tells waits for the next event that the live stream tells, which is kept, and reads its data.
func tells[Data any](l *listener) (d Data) {
	l.t.Helper()
	defer time.AfterFunc(2*time.Minute, l.leave).Stop() // a webhook that fails is tried again after one
	e, ok := l.next()
	if !ok {
		l.t.Fatalf("the stream ended (%d)", l.answer.StatusCode)
	}
	if err := json.Unmarshal([]byte(e.data), &d); err != nil || e.id == "" {
		l.t.Fatalf("the stream tells %+v (%v)", e, err)
	}
	return d
}

// A toldPresence is what the live stream tells of an agent.
type toldPresence struct {
	Agent string `json:"agent_id"`
	presenceNow
	Call string `json:"active_call_id"`
}

// A presenceNow is what the API shows of an agent.
type presenceNow struct {
	Status string
	Reason string
	Since  time.Time
	Until  *time.Time
}

// A watch follows what the live stream tells of agents.
type watch struct {
	*site
	*listener
	told map[string][]toldPresence // and was not asked for yet, by agent
}

func (s *site) watch() *watch {
	return &watch{s, s.listen("", "agent.presence"), map[string][]toldPresence{}}
}

// next waits until one more presence of an agent is told.
func (w *watch) next(u rig.User) toldPresence {
	w.T.Helper()
	for len(w.told[u.ID]) == 0 {
		p := tells[toldPresence](w.listener)
		w.told[p.Agent] = append(w.told[p.Agent], p)
	}
	p := w.told[u.ID][0]
	w.told[u.ID] = w.told[u.ID][1:]
	return p
}

// is fails unless the next presence told of an agent is this, with this call and reason ("" for none), and what the API shows.
func (w *watch) is(u rig.User, status, call, reason string) toldPresence {
	w.T.Helper()
	p := w.next(u)
	if p.Status != status || p.Call != call || p.Reason != reason {
		w.T.Fatalf("%s is told as %s, call %q, reason %q; want %s, %q, %q", u.Name, p.Status, p.Call, p.Reason, status, call, reason)
	}
	var shown struct {
		Presence presenceNow
		Call     string `json:"active_call_id"`
	}
	w.Want(200, "GET", "/agents/"+u.ID, nil, &shown)
	a, b := p.presenceNow, shown.Presence
	sameEnd := a.Until == nil && b.Until == nil || a.Until != nil && b.Until != nil && a.Until.Equal(*b.Until)
	if a.Status != b.Status || a.Reason != b.Reason || !a.Since.Equal(b.Since) || !sameEnd || status == "busy" && shown.Call != call {
		w.T.Errorf("%s is told as %+v, and shown as %+v", u.Name, p, shown)
	}
	return p
}

// TestTheStreamTellsAnAgentsPresence follows telephones that come, call, and go, and what their users choose to be.
func TestTheStreamTellsAnAgentsPresence(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{Env: quiet}, func(t *testing.T, s *rig.Server) {
		o, other := &office{site: newSite(s)}, newSite(s)
		o.ada, o.bob = o.AddUser("Ada"), o.AddUser("Bob")
		eve, _ := other.AddUser("Eve"), other.AddUser("Fay") // so that the next event of either organisation has the same number
		w, elsewhere := o.watch(), other.watch()
		o.adaPhone = o.phone(o.ada, adaTone, rig.PhoneOptions{})
		w.is(o.ada, "available", "", "")
		o.bobPhone = o.phone(o.bob, bobTone, rig.PhoneOptions{})
		began := w.is(o.bob, "available", "", "").Since
		o.unanswered(w)
		o.lunch(w)
		for _, choice := range []string{"dnd", "offline", "available"} {
			o.presence(o.bob, choice)
			w.is(o.bob, choice, "", "")
		}
		o.bobPhone.Close()
		if gone := w.is(o.bob, "offline", "", ""); !gone.Since.After(began) {
			t.Errorf("bob came at %s, and is gone since %s", began, gone.Since)
		}
		other.sippPhone(eve.SIP)
		elsewhere.is(eve, "available", "", "")
		if len(elsewhere.told) != 1 {
			t.Errorf("another organisation is told %v", elsewhere.told)
		}
	})
}

// rings has Ada call Bob, and returns the call.
func (o *office) rings(w *watch) (call string) {
	o.T.Helper()
	o.adaPhone.Do("dial", o.bob.Extension)
	o.bobPhone.Wait("CALL_INCOMING", "")
	call = o.live(nil)["id"].(string)
	w.is(o.ada, "busy", call, "")
	w.is(o.bob, "ringing", call, "")
	return call
}

// unanswered has Ada call Bob, and give up.
func (o *office) unanswered(w *watch) {
	o.T.Helper()
	o.rings(w)
	o.adaPhone.Do("hangup", "")
	w.is(o.ada, "available", "", "")
	w.is(o.bob, "available", "", "")
}

// lunch has Bob speak with Ada, and choose meanwhile to be away afterwards.
func (o *office) lunch(w *watch) {
	o.T.Helper()
	call := o.rings(w)
	o.bobPhone.Do("accept", "")
	w.is(o.bob, "busy", call, "")
	until := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	o.Want(200, "PUT", "/agents/"+o.bob.ID+"/presence", map[string]any{"status": "away", "reason": "lunch", "until": until}, nil)
	o.bobPhone.Do("hangup", "")
	if p := w.is(o.bob, "away", "", "lunch"); p.Until == nil || !p.Until.Equal(until) {
		o.T.Errorf("bob is away until %v; want %s", p.Until, until)
	}
	w.is(o.ada, "available", "", "")
}
