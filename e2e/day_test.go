package e2e

import (
	"context"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"soniq/e2e/rig"
	"soniq/media"
	"soniq/robot"
)

// A day at a company, from outside and from inside: a menu of keys and words, queues with music, agents who do not answer and agents who do,
// a transfer into another queue, a queue that nobody answers, a message, and a callback.
func TestADayAtTheCompany(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{}, func(t *testing.T, s *rig.Server) {
		d := newCompany(s)
		d.pressesAKey()
		d.saysWhatTheyWant()
		d.isCalledBack()
	})
}

type company struct {
	*office
	way            carrier
	sales, support string
	menu           string
}

func newCompany(s *rig.Server) *company {
	d := &company{office: &office{site: newSite(s)}}
	d.ada, d.bob = d.AddUser("Ada"), d.AddUser("Bob")
	d.adaPhone = d.phone(d.ada, adaTone, rig.PhoneOptions{})
	d.bobPhone = d.phone(d.bob, bobTone, rig.PhoneOptions{})
	music := d.sound(musicTone, 20*time.Second)
	d.support = d.addQueue(map[string]any{"name": "Support", "music_audio_id": music, "wrap_up_seconds": 0, "max_wait_seconds": 10,
		"overflow": map[string]any{"to": "voicemail:" + d.ada.ID}}, d.ada)
	d.sales = d.addQueue(map[string]any{"name": "Sales", "music_audio_id": music, "wrap_up_seconds": 0, "ring_timeout_seconds": 20,
		"callback": map[string]any{"enabled": true, "key": "1", "offer_after_seconds": 0}}, d.ada, d.bob)
	d.menu = d.flow(
		node("menu", "menu", map[string]any{"prompt": map[string]any{"audio_id": d.sound(greetingTone, 2*time.Second)}, "speech": true,
			"digits": map[string]any{"1": "sales", "2": "technical support"}, "timeout_seconds": 10, "retries": 1},
			"1", "sales", "2", "support", "timeout", "bye", "invalid", "bye"),
		node("sales", "queue", map[string]any{"queue_id": d.sales}, "timeout", "bye", "overflow", "bye"),
		node("support", "queue", map[string]any{"queue_id": d.support}, "timeout", "message", "overflow", "message"),
		node("message", "voicemail", map[string]any{"mailbox": d.ada.ID}),
		node("bye", "hangup", nil))
	d.way = d.line(d.menu)
	return d
}

// pressesAKey: a caller chooses sales, waits, is refused by one agent and answered by the other, who hands them to support.
func (d *company) pressesAKey() {
	v := d.visit(d.way, "+12125550171")
	at := v.hears(0, greetingTone)
	v.press("1")
	at = v.hears(at, musicTone)
	first, second, agentPhones := d.firstRung()
	agentPhones[first].Do("hangup", "")
	d.stands(d.sales, "offering")
	agentPhones[second].Wait("CALL_INCOMING", "")
	agentPhones[second].Do("accept", "")
	tones := map[string]float64{d.ada.ID: adaTone, d.bob.ID: bobTone}
	v.hears(at, tones[second])
	live := d.live(func(c map[string]any) bool { return c["status"] == "in_progress" })
	if live["agent_id"] != second || live["queue_id"] != d.sales {
		d.T.Errorf("connected: %v", live)
	}
	at = v.Mark()
	d.Want(200, "POST", "/calls/"+live["id"].(string)+"/transfer", map[string]any{"to": "queue:" + d.support}, nil)
	v.hears(at, musicTone)
	d.adaPhone.Wait("CALL_INCOMING", "")
	d.adaPhone.Do("accept", "")
	v.hears(v.Mark(), adaTone)
	v.line.HangUp()
	r := d.record("+12125550171")
	if r.Status != "completed" || r.Agent == nil || r.Agent.ID != d.ada.ID || r.FlowID == nil {
		d.T.Errorf("record of who was handed on: %s %+v", r, r.Agent)
	}
	for _, q := range []string{d.sales, d.support} {
		if e := d.stands(q, "completed"); e.CallID != r.CallID {
			d.T.Errorf("the caller in the queue: %+v", e)
		}
	}
	d.is(d.ada, "available")
	d.is(d.bob, "available")
}

// firstRung waits until one of the two agents is rung, and tells who it is and who the other.
func (d *company) firstRung() (first, second string, phones map[string]*rig.Phone) {
	d.T.Helper()
	phones = map[string]*rig.Phone{d.ada.ID: d.adaPhone, d.bob.ID: d.bobPhone}
	rig.Until(d.T, "an agent is rung", 30*time.Second, func() bool {
		for _, u := range []rig.User{d.ada, d.bob} {
			if agent(d.Client, u.ID).String() == "ringing" {
				first = u.ID
			}
		}
		return first != ""
	})
	second = d.ada.ID
	if first == d.ada.ID {
		second = d.bob.ID
	}
	phones[first].Wait("CALL_INCOMING", "")
	return first, second, phones
}

// saysWhatTheyWant: a caller says a word; nobody answers, and they leave a message.
func (d *company) saysWhatTheyWant() {
	d.presence(d.ada, "away")
	line := d.caller("+12125550172")
	words := say(d.T, "rms", "technical support please")
	speak := func(pcm []int16) {
		if err := line.Say(context.Background(), pcm); err != nil {
			d.T.Errorf("the caller could not speak: %v", err)
		}
	}
	speak(make([]int16, 3*8000)) // the greeting lasts two seconds
	speak(append(words, make([]int16, 4*8000)...))
	d.stands(d.support, "waiting")
	d.stands(d.support, "timed_out")
	go func() { _ = line.Say(context.Background(), media.Tone(messageTone, -10, 40*time.Second, 8000)) }() // until they hang up
	live := d.live(func(c map[string]any) bool { return c["stage"] == "voicemail" })
	<-time.After(12 * time.Second) // the greeting, the tone, and some seconds of the message
	line.HangUp()
	got := d.hooks.Wait("voicemail.received", time.Minute, func(e rig.Event) bool { return e.Data["call_id"] == live["id"] })
	if box := got.Data["mailbox"].(map[string]any); box["id"] != d.ada.ID {
		d.T.Errorf("the message is in %v", box)
	}
	if way, _, _ := d.passed(live["id"].(string)); way != "menu:2 support:timeout message:left" && way != "menu:2 support:timeout message:gone" {
		d.T.Errorf("way of who said what they want: %s", way)
	}
	d.presence(d.ada, "available")
}

// isCalledBack: nobody is there; the caller presses a key, hangs up, and is called in turn.
func (d *company) isCalledBack() {
	d.presence(d.ada, "away")
	d.presence(d.bob, "away")
	v := d.visit(d.way, "+12125550173")
	at := v.hears(0, greetingTone)
	v.press("1")
	v.hears(at, musicTone)
	v.press("1")
	v.ends()
	d.stands(d.sales, "callback_pending")
	_, ulaw := tone(d.T, otherTone)
	caller := d.Server.Sipp(rig.Script{Scenario: "answer", IP: d.way.ip, Port: d.way.port, Play: ulaw, Quiet: true})
	heard := d.bobPhone.Mark()
	d.presence(d.bob, "available")
	d.bobPhone.Wait("CALL_INCOMING", "")
	d.bobPhone.Do("accept", "")
	d.stands(d.sales, "connected")
	if pcm := d.bobPhone.Since(heard, 4*time.Second); presence(pcm, otherTone) < time.Second {
		d.T.Errorf("the agent heard who is called back for %s", presence(pcm, otherTone))
	}
	d.bobPhone.Do("hangup", "")
	d.stands(d.sales, "completed")
	caller.Wait()
}

// caller calls in and is silent.
func (d *company) caller(from string) *robot.Line {
	d.T.Helper()
	phone, err := robot.StrangerAt(d.T.Context(), netip.MustParseAddr(d.way.ip), from, d.Server.SIP, slog.New(slog.DiscardHandler))
	if err != nil {
		d.T.Fatal(err)
	}
	d.T.Cleanup(phone.Close)
	ctx, cancel := context.WithTimeout(d.T.Context(), 30*time.Second)
	defer cancel()
	line, err := phone.Call(ctx, d.way.number)
	if err != nil {
		d.T.Fatal(err)
	}
	return line
}
