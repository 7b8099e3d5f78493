package e2e

import (
	"net/url"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// The tones of a queue.
const (
	musicTone   = 2000
	whisperTone = 2400
)

// addQueue adds a queue with these agents.
func (s *site) addQueue(settings map[string]any, agents ...rig.User) string {
	s.T.Helper()
	body := map[string]any{"name": "Support"}
	for k, v := range settings {
		body[k] = v
	}
	var made struct{ ID string }
	s.Want(201, "POST", "/queues", body, &made)
	for _, u := range agents {
		s.Want(201, "POST", "/queues/"+made.ID+"/members", map[string]any{"user_id": u.ID}, nil)
	}
	return made.ID
}

func (s *site) presence(u rig.User, status string) {
	s.T.Helper()
	s.Want(200, "PUT", "/agents/"+u.ID+"/presence", map[string]any{"status": status}, nil)
}

// is waits until an agent does something.
func (s *site) is(u rig.User, status string) {
	s.T.Helper()
	rig.Until(s.T, u.Name+" is "+status, 20*time.Second, func() bool { return agent(s.Client, u.ID).String() == status })
}

// A standing is a caller of a queue as the API gives them.
type standing struct {
	ID         string
	CallID     string `json:"call_id"`
	Status     string
	Position   int
	Offers     int
	ExitReason *string `json:"exit_reason"`
}

// standing are the callers of a queue, in any state.
func (s *site) standing(id string) (all []standing) {
	s.T.Helper()
	var page struct{ Data []standing }
	s.Want(200, "GET", "/queues/"+id+"/calls?status=waiting,offering,connected,completed,abandoned,timed_out,overflowed,exited,removed,callback_pending,callback_dialing,callback_failed", nil, &page)
	return page.Data
}

// stands waits until the one caller of a queue is in a state.
func (s *site) stands(id, status string) (e standing) {
	s.T.Helper()
	rig.Until(s.T, "a caller is "+status, 30*time.Second, func() bool {
		for _, e = range s.standing(id) {
			if e.Status == status {
				return true
			}
		}
		return false
	})
	return e
}

// figures are what a queue tells of itself.
type figures struct {
	Waiting int `json:"callers_waiting"`
	Agents  struct {
		Available, Ringing, Busy int
		WrapUp                   int `json:"wrap_up"`
	}
	Level     int `json:"service_level_rate"`
	Callbacks int `json:"callbacks_pending"`
	Today     struct{ Answered, Abandoned, Overflowed int }
}

func (s *site) figures(id string) (f figures) {
	s.T.Helper()
	s.Want(200, "GET", "/queues/"+id+"/stats", nil, &f)
	return f
}

// A record is what a call detail record tells of queues.
type record struct {
	Status       string
	MissedReason *string `json:"missed_reason"`
	EndReason    string  `json:"end_reason"`
	Queue        struct{ ID, Name string }
	Waited       int `json:"queue_seconds"`
	Offered      []struct {
		Agent  string `json:"agent_id"`
		Result string
	} `json:"agents_offered"`
}

// queued waits for the one record with a number on either side.
func (s *site) queued(number string) record {
	s.T.Helper()
	var page struct{ Data []record }
	rig.Until(s.T, "the record", 30*time.Second, func() bool {
		page.Data = nil
		s.Want(200, "GET", "/cdr?phone="+url.QueryEscape(number), nil, &page)
		return len(page.Data) == 1
	})
	return page.Data[0]
}

// results are what came of the offers of a call, in order.
func (r record) results() (all []string) {
	for _, o := range r.Offered {
		all = append(all, o.Result)
	}
	return all
}

func (r record) missed() string {
	if r.MissedReason == nil {
		return ""
	}
	return *r.MissedReason
}

// TestACallerWaitsWithMusicUntilAnAgentAnswers follows a caller through a queue, by ear.
func TestACallerWaitsWithMusicUntilAnAgentAnswers(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{Env: quiet}, func(t *testing.T, s *rig.Server) {
		o := &office{site: newSite(s)}
		o.ada, o.bob = o.AddUser("Ada"), o.AddUser("Bob")
		o.adaPhone = o.phone(o.ada, adaTone, rig.PhoneOptions{})
		o.bobPhone = o.phone(o.bob, bobTone, rig.PhoneOptions{})
		id := o.addQueue(map[string]any{"extension": "600", "wrap_up_seconds": 2, "music_audio_id": o.sound(musicTone, 20*time.Second),
			"whisper_audio_id": o.sound(whisperTone, 2*time.Second)}, o.ada)
		o.presence(o.ada, "away")
		o.bobPhone.Dial("600")
		o.stands(id, "waiting")
		pcm := o.bobPhone.Since(o.bobPhone.Mark(), 2*time.Second)
		hears(t, "the caller who waits", pcm, musicTone, time.Second)
		if f := o.figures(id); f.Waiting != 1 || f.Agents.Available != 0 {
			t.Errorf("while the caller waits: %+v", f)
		}
		ada, bob := o.adaPhone.Mark(), o.bobPhone.Mark()
		o.presence(o.ada, "available")
		o.adaPhone.Wait("CALL_INCOMING", "")
		o.stands(id, "offering")
		if f := o.figures(id); f.Agents.Ringing != 1 {
			t.Errorf("while ada rings: %+v", f)
		}
		o.adaPhone.Do("accept", "")
		hears(t, "the agent who answered", o.adaPhone.Since(ada, 1500*time.Millisecond), whisperTone, time.Second)
		o.adaPhone.Since(ada, 3*time.Second)
		o.talks("Ada", o.adaPhone, bobTone)
		o.talks("Bob", o.bobPhone, adaTone)
		heard := o.bobPhone.Since(bob, 4*time.Second)
		hearsNot(t, "the caller", heard, whisperTone, 0)
		if f := o.figures(id); f.Agents.Busy != 1 || f.Waiting != 0 || f.Today.Answered != 1 {
			t.Errorf("while they speak: %+v", f)
		}
		o.bobPhone.Do("hangup", "")
		o.is(o.ada, "wrap_up")
		o.is(o.ada, "available")
		if e := o.standing(id)[0]; e.Status != "completed" || e.Offers != 1 {
			t.Errorf("afterwards: %+v", e)
		}
		if r := o.queued(o.bob.Extension); r.Queue.Name != "Support" || r.Waited < 2 || len(r.Offered) != 1 || r.Offered[0].Agent != o.ada.ID || r.Offered[0].Result != "answered" {
			t.Errorf("record: %+v", r)
		}
	})
}

// leadTo makes a number outside lead to a queue.
func (s *site) leadTo(queue string) carrier {
	s.T.Helper()
	way := s.carrier("", nil)
	s.Want(200, "PATCH", "/numbers/"+s.numberID(way), map[string]any{"queue_id": queue}, nil)
	return way
}

// TestWhoRefusesIsFollowedByTheNext has an agent refuse a caller, who keeps the place and is offered to another.
func TestWhoRefusesIsFollowedByTheNext(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{Env: quiet}, func(t *testing.T, s *rig.Server) {
		o := &office{site: newSite(s)}
		o.ada, o.carol = o.AddUser("Ada"), o.AddUser("Carol")
		o.adaPhone = o.phone(o.ada, adaTone, rig.PhoneOptions{})
		o.carolPhone = o.phone(o.carol, carolTone, rig.PhoneOptions{})
		id := o.addQueue(map[string]any{"strategy": "priority", "missed_offers_limit": 1, "missed_offers_pause_seconds": 4}, o.ada, o.carol)
		o.Want(200, "PATCH", "/queues/"+id+"/members/"+o.ada.ID, map[string]any{"priority": 1}, nil)
		way := o.leadTo(id)
		v := o.visit(way, "+12125550111")
		o.adaPhone.Wait("CALL_INCOMING", "")
		first := o.stands(id, "offering")
		o.adaPhone.Do("hangup", "")
		o.carolPhone.Wait("CALL_INCOMING", "")
		if e := o.standing(id); len(e) != 1 || e[0].ID != first.ID || e[0].Position != 1 || e[0].Offers != 2 {
			t.Errorf("offered again: %+v, first %+v", e, first)
		}
		var a struct {
			Presence struct{ Status, Reason string }
		}
		rig.Until(t, "who refused is away", 3*time.Second, func() bool {
			o.Want(200, "GET", "/agents/"+o.ada.ID, nil, &a)
			return a.Presence.Status == "away" && a.Presence.Reason == "missed_offers"
		})
		mark := v.Mark()
		o.carolPhone.Do("accept", "")
		v.hears(mark, carolTone)
		o.is(o.ada, "available")
		o.carolPhone.Do("hangup", "")
		v.ends()
		if r := o.queued("+12125550111"); r.Status != "completed" || len(r.Offered) != 2 || r.Offered[0].Result != "rejected" || r.Offered[1].Result != "answered" {
			t.Errorf("record %+v", r)
		}
	})
}

// TestACallerWhoHangsUpInAQueueIsMissed follows what is left of a caller who gives up while an agent is rung.
func TestACallerWhoHangsUpInAQueueIsMissed(t *testing.T) {
	t.Parallel()
	o := &office{site: newSite(rig.Start(t, rig.Options{Env: quiet}))}
	o.ada = o.AddUser("Ada")
	o.adaPhone = o.phone(o.ada, adaTone, rig.PhoneOptions{})
	id := o.addQueue(map[string]any{"short_abandon_seconds": 0}, o.ada)
	v := o.visit(o.leadTo(id), "+12125550111")
	o.adaPhone.Wait("CALL_INCOMING", "")
	v.line.HangUp()
	o.adaPhone.Wait("CALL_CLOSED", "")
	o.stands(id, "abandoned")
	o.is(o.ada, "available")
	if r := o.queued("+12125550111"); r.Status != "missed" || r.missed() != "abandoned_in_queue" || r.EndReason != "caller_hangup" || r.results()[0] != "canceled" {
		t.Errorf("record %+v", r)
	}
	if f := o.figures(id); f.Today.Abandoned != 1 || f.Waiting != 0 {
		t.Errorf("figures %+v", f)
	}
}

// TestACallerIsMovedRemovedAndFollowsTheSettings changes the queue under a caller who waits.
func TestACallerIsMovedRemovedAndFollowsTheSettings(t *testing.T) {
	t.Parallel()
	o := &office{site: newSite(rig.Start(t, rig.Options{Env: quiet}))}
	o.ada = o.AddUser("Ada")
	o.adaPhone = o.phone(o.ada, adaTone, rig.PhoneOptions{})
	id := o.addQueue(map[string]any{"music_audio_id": o.sound(2000, 10*time.Second)}, o.ada)
	other := o.addQueue(map[string]any{"name": "Other", "music_audio_id": o.sound(1300, 10*time.Second)})
	o.presence(o.ada, "away")
	v := o.visit(o.leadTo(id), "+12125550111")
	mark := v.hears(0, 2000)
	o.Want(200, "PATCH", "/queues/"+id, map[string]any{"music_audio_id": o.sound(700, 10*time.Second)}, nil)
	mark = v.hears(mark, 700)
	e := o.stands(id, "waiting")
	o.Want(200, "PATCH", "/queues/"+id+"/calls/"+e.CallID, map[string]any{"queue_id": other}, nil)
	mark = v.hears(mark, 1300)
	o.stands(id, "exited")
	o.Want(201, "POST", "/queues/"+other+"/members", map[string]any{"user_id": o.ada.ID}, nil)
	o.presence(o.ada, "available")
	o.adaPhone.Wait("CALL_INCOMING", "")
	o.Want(200, "PUT", "/agents/"+o.ada.ID+"/queues/"+other, map[string]any{"signed_in": false}, nil)
	o.adaPhone.Wait("CALL_CLOSED", "")
	o.stands(other, "waiting")
	o.Want(204, "DELETE", "/queues/"+other+"/calls/"+e.CallID+"?to=hangup", nil, nil)
	v.ends()
	if r := o.queued("+12125550111"); r.Status != "missed" || r.EndReason != "api" || r.Queue.ID != other {
		t.Errorf("record %+v", r)
	}
}

// TestACallerWhoCannotStayGoesOn leads callers to the overflow of their queues.
func TestACallerWhoCannotStayGoesOn(t *testing.T) {
	t.Parallel()
	o := &office{site: newSite(rig.Start(t, rig.Options{Env: quiet}))}
	o.ada, o.bob = o.AddUser("Ada"), o.AddUser("Bob")
	o.adaPhone = o.phone(o.ada, adaTone, rig.PhoneOptions{})
	o.bobPhone = o.phone(o.bob, bobTone, rig.PhoneOptions{Auto: true})
	o.presence(o.ada, "away")
	to := func(dest string, after any) map[string]any {
		return map[string]any{"to": dest, "after_seconds": after}
	}
	for i, c := range []struct {
		settings map[string]any
		status   string // of the caller's visit; "" where they could not enter
	}{
		{map[string]any{"overflow": to("ext:"+o.bob.Extension, 2)}, "overflowed"},
		{map[string]any{"overflow": to("user:"+o.bob.ID, nil), "max_wait_seconds": 5}, "timed_out"},
		{map[string]any{"overflow": to("user:"+o.bob.ID, nil), "leave_when_no_agents": true}, "overflowed"},
		{map[string]any{"overflow": to("user:"+o.bob.ID, nil), "join_when_no_agents": false}, ""},
		{map[string]any{"overflow": to("user:"+o.bob.ID, nil), "hours": map[string]any{"weekly": map[string]any{}}}, ""},
	} {
		from := "+1212555012" + string(rune('0'+i))
		id := o.addQueue(c.settings, o.ada)
		v := o.visit(o.leadTo(id), from)
		v.hears(0, bobTone)
		v.line.HangUp()
		o.bobPhone.Wait("CALL_CLOSED", "")
		if c.status != "" {
			o.stands(id, c.status)
		} else if all := o.standing(id); len(all) != 0 {
			t.Errorf("entered: %+v", all)
		}
		if r := o.queued(from); r.Status != "completed" {
			t.Errorf("%v: record %+v", c.settings, r)
		}
	}
	last := o.addQueue(map[string]any{"name": "Last", "music_audio_id": o.sound(2300, 5*time.Second)}, o.ada)
	first := o.addQueue(map[string]any{"max_callers": 1, "music_audio_id": o.sound(2000, 5*time.Second), "overflow": to("queue:"+last, nil)}, o.ada)
	way := o.leadTo(first)
	one := o.visit(way, "+12125550131")
	one.hears(0, 2000)
	two := o.visit(way, "+12125550132")
	two.hears(0, 2300)
	two.line.HangUp()
	one.line.HangUp()
	if r := o.queued("+12125550132"); r.Queue.ID != last || r.missed() != "abandoned_in_queue" {
		t.Errorf("record %+v", r)
	}
}

// TestACallerIsCalledBackInTheirTurn has a caller press the key of the callback, hang up, and be dialled when an agent is free.
func TestACallerIsCalledBackInTheirTurn(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{Env: quiet}, func(t *testing.T, s *rig.Server) {
		o := &office{site: newSite(s)}
		o.ada = o.AddUser("Ada")
		o.adaPhone = o.phone(o.ada, adaTone, rig.PhoneOptions{})
		id := o.addQueue(map[string]any{"name": "Sales", "wrap_up_seconds": 1, "music_audio_id": o.sound(2000, 5*time.Second),
			"callback": map[string]any{"enabled": true, "key": "5", "offer_after_seconds": 0}}, o.ada)
		o.presence(o.ada, "away")
		way := o.leadTo(id)
		v := o.visit(way, "+12125550142")
		v.hears(0, 2000)
		v.press("5")
		v.ends()
		o.stands(id, "callback_pending")
		if r := o.queued("+12125550142"); r.Status != "canceled" || r.missed() != "" || r.Queue.ID != id {
			t.Errorf("record of who is called back: %+v", r)
		}
		var page struct {
			Data []struct {
				Status   string
				To       string `json:"to_number"`
				Origin   string
				Attempts []struct{ Result string }
			}
		}
		o.Want(200, "GET", "/callbacks?queue_id="+id, nil, &page)
		if len(page.Data) != 1 || page.Data[0].Status != "waiting_agent" || page.Data[0].To != "+12125550142" || page.Data[0].Origin != "queue" {
			t.Fatalf("callbacks %+v", page)
		}
		_, mu := tone(t, bobTone)
		customer := s.Sipp(rig.Script{Scenario: "answer", IP: way.ip, Port: way.port, Talk: 4 * time.Second, Play: mu, Ring: 300})
		s.Kill() // a callback outlives the server
		s.Start()
		o.presence(o.ada, "available")
		o.adaPhone.Wait("CALL_INCOMING", "")
		o.stands(id, "callback_dialing")
		o.adaPhone.Do("accept", "")
		o.stands(id, "connected")
		hears(t, "the agent", o.adaPhone.Since(o.adaPhone.Mark(), 2*time.Second), bobTone, time.Second)
		o.adaPhone.Do("hangup", "")
		_ = customer.End()
		o.stands(id, "completed")
		o.is(o.ada, "available")
		o.Want(200, "GET", "/callbacks?queue_id="+id, nil, &page)
		if c := page.Data[0]; c.Status != "completed" || len(c.Attempts) != 1 || c.Attempts[0].Result != "completed" {
			t.Errorf("callback %+v", c)
		}
	})
}

// TestAWaitingCallerIsToldTheirPlace has a caller hear words between the music.
func TestAWaitingCallerIsToldTheirPlace(t *testing.T) {
	t.Parallel()
	o := &office{site: newSite(rig.Start(t, rig.Options{Env: quiet}))}
	o.ada = o.AddUser("Ada")
	id := o.addQueue(map[string]any{"music_audio_id": o.sound(2000, 5*time.Second), "announce": map[string]any{"position": true, "every_seconds": 60}}, o.ada)
	v := o.visit(o.leadTo(id), "+12125550111")
	v.hears(0, 2000)
	words := o.said(20 * time.Second)
	if alike, at := likeness(v.Since(0, 6*time.Second), words); alike < 0.7 {
		t.Errorf("the caller heard what is like the announcement by %.2f, at %s", alike, at)
	} else {
		v.hears(int((at+seconds(len(words))).Seconds()*8000), 2000)
	}
	v.line.HangUp()
}
