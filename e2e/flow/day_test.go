package flow

import (
	"context"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
	"soniq/internal/protocol/media/dsp"
	"soniq/internal/sandbox/softphone"
)

// A day at a company with outside and inside calls: a menu of keys and words, queues with music, agents that answer and others that do
// not, a transfer into another queue, a voicemail message, and a callback.
func TestDay_MenuQueueVoicemailAndCallback(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 90*time.Second, "a menu, two queues, a message and a callback, one after the other")
	rig.Either(t, rig.Options{}, func(t *testing.T, s *rig.Server) {
		d := newCompany(s)
		d.keyToQueue()
		d.speechToVoicemail()
		d.callback()
	})
}

// company is an organisation with a menu, queues and agents.
type company struct {
	*fixture.Office
	way            fixture.Carrier
	sales, support string
	menu           string
}

// newCompany makes a company.
func newCompany(s *rig.Server) *company {
	d := &company{Office: &fixture.Office{Org: fixture.NewOrg(s)}}
	d.Ada, d.Bob = d.AddUser("Ada"), d.AddUser("Bob")
	d.AdaPhone = d.Phone(d.Ada, fixture.AdaTone, rig.PhoneOptions{})
	d.BobPhone = d.Phone(d.Bob, fixture.BobTone, rig.PhoneOptions{})
	music := d.UploadTone(fixture.MusicTone, 20*time.Second)
	d.support = d.AddQueue(map[string]any{"name": "Support", "music_audio_id": music, "wrap_up_seconds": 0, "max_wait_seconds": 10,
		"overflow": map[string]any{"to": "voicemail:" + d.Ada.ID}}, d.Ada)
	d.sales = d.AddQueue(map[string]any{"name": "Sales", "music_audio_id": music, "wrap_up_seconds": 0, "ring_timeout_seconds": 20,
		"callback": map[string]any{"enabled": true, "key": "1", "offer_after_seconds": 0}}, d.Ada, d.Bob)
	d.menu = d.AddFlow(
		fixture.Node("menu", "menu", map[string]any{"prompt": map[string]any{"audio_id": d.UploadTone(fixture.GreetingTone, 2*time.Second)}, "speech": true,
			"digits": map[string]any{"1": "sales", "2": "technical support"}, "timeout_seconds": 10, "retries": 1},
			"1", "sales", "2", "support", "timeout", "bye", "invalid", "bye"),
		fixture.Node("sales", "queue", map[string]any{"queue_id": d.sales}, "timeout", "bye", "overflow", "bye"),
		fixture.Node("support", "queue", map[string]any{"queue_id": d.support}, "timeout", "message", "overflow", "message"),
		fixture.Node("message", "voicemail", map[string]any{"mailbox": d.Ada.ID}),
		fixture.Node("bye", "hangup", nil))
	d.way = d.AddFlowCarrier(d.menu)
	return d
}

// keyToQueue lets a caller press a key and wait. One agent refuses, the other answers and transfers the caller to
// support.
func (d *company) keyToQueue() {
	v := d.CallIn(d.way, "+12125550171")
	at := v.WaitTone(0, fixture.GreetingTone)
	v.Press("1")
	at = v.WaitTone(at, fixture.MusicTone)
	first, second, agentPhones := d.firstRung()
	agentPhones[first].Do("hangup", "")
	d.WaitQueueEntry(d.sales, "offering")
	agentPhones[second].Wait("CALL_INCOMING", "")
	agentPhones[second].Do("accept", "")
	tones := map[string]float64{d.Ada.ID: fixture.AdaTone, d.Bob.ID: fixture.BobTone}
	v.WaitTone(at, tones[second])
	live := d.LiveCall(func(c map[string]any) bool { return c["status"] == "in_progress" })
	if live["agent_id"] != second || live["queue_id"] != d.sales {
		d.T.Errorf("connected: %v", live)
	}
	at = v.Mark()
	d.Want(200, "POST", "/calls/"+live["id"].(string)+"/transfer", map[string]any{"to": "queue:" + d.support}, nil)
	v.WaitTone(at, fixture.MusicTone)
	d.AdaPhone.Wait("CALL_INCOMING", "")
	d.AdaPhone.Do("accept", "")
	v.WaitTone(v.Mark(), fixture.AdaTone)
	v.Line.HangUp()
	r := d.CDR("+12125550171")
	if r.Status != "completed" || r.Agent == nil || r.Agent.ID != d.Ada.ID || r.FlowID == nil {
		d.T.Errorf("record of who was handed on: %s %+v", r, r.Agent)
	}
	for _, q := range []string{d.sales, d.support} {
		if e := d.WaitQueueEntry(q, "completed"); e.CallID != r.CallID {
			d.T.Errorf("the caller in the queue: %+v", e)
		}
	}
	d.WaitPresence(d.Ada, "available")
	d.WaitPresence(d.Bob, "available")
}

// firstRung waits until one of the two agents rings. It returns that agent and the other.
func (d *company) firstRung() (first, second string, phones map[string]*rig.Phone) {
	d.T.Helper()
	phones = map[string]*rig.Phone{d.Ada.ID: d.AdaPhone, d.Bob.ID: d.BobPhone}
	rig.Until(d.T, "an agent is rung", 30*time.Second, func() bool {
		for _, u := range []rig.User{d.Ada, d.Bob} {
			if fixture.GetAgent(d.Client, u.ID).String() == "ringing" {
				first = u.ID
			}
		}
		return first != ""
	})
	second = d.Ada.ID
	if first == d.Ada.ID {
		second = d.Bob.ID
	}
	phones[first].Wait("CALL_INCOMING", "")
	return first, second, phones
}

// speechToVoicemail lets a caller say a word. No agent answers, and the caller leaves a message.
func (d *company) speechToVoicemail() {
	d.SetPresence(d.Ada, "away")
	line := d.caller("+12125550172")
	words := fixture.Synthesize(d.T, "rms", "technical support please")
	speak := func(pcm []int16) {
		if err := line.Say(context.Background(), pcm); err != nil {
			d.T.Errorf("the caller could not speak: %v", err)
		}
	}
	speak(make([]int16, 3*8000)) // the greeting lasts two seconds
	speak(append(words, make([]int16, 4*8000)...))
	d.WaitQueueEntry(d.support, "waiting")
	d.WaitQueueEntry(d.support, "timed_out")
	go func() { _ = line.Say(context.Background(), dsp.Tone(fixture.MessageTone, -10, 40*time.Second, 8000)) }() // until they hang up
	live := d.LiveCall(func(c map[string]any) bool { return c["stage"] == "voicemail" })
	<-time.After(12 * time.Second) // the greeting, the tone, and some seconds of the message
	line.HangUp()
	got := d.Webhook.Wait("voicemail.received", time.Minute, func(e rig.Event) bool { return e.Data["call_id"] == live["id"] })
	if box := got.Data["mailbox"].(map[string]any); box["id"] != d.Ada.ID {
		d.T.Errorf("the message is in %v", box)
	}
	if way, _, _ := d.FlowPath(live["id"].(string), "menu:2 support:timeout message:left", "menu:2 support:timeout message:gone"); way != "menu:2 support:timeout message:left" && way != "menu:2 support:timeout message:gone" {
		d.T.Errorf("way of who said what they want: %s", way)
	}
	d.SetPresence(d.Ada, "available")
}

// callback lets a caller press a key, hang up, and be called back.
func (d *company) callback() {
	d.SetPresence(d.Ada, "away")
	d.SetPresence(d.Bob, "away")
	v := d.CallIn(d.way, "+12125550173")
	at := v.WaitTone(0, fixture.GreetingTone)
	v.Press("1")
	v.WaitTone(at, fixture.MusicTone)
	v.Press("1")
	v.WaitEnd()
	d.WaitQueueEntry(d.sales, "callback_pending")
	_, ulaw := fixture.Tone(d.T, fixture.OtherTone)
	caller := d.Server.Sipp(rig.Script{Scenario: "answer", IP: d.way.IP, Port: d.way.Port, Play: ulaw, Quiet: true})
	heard := d.BobPhone.Mark()
	d.SetPresence(d.Bob, "available")
	d.BobPhone.Wait("CALL_INCOMING", "")
	d.BobPhone.Do("accept", "")
	d.WaitQueueEntry(d.sales, "connected")
	if pcm := d.BobPhone.Since(heard, 4*time.Second); fixture.ToneDuration(pcm, fixture.OtherTone) < time.Second {
		d.T.Errorf("the agent heard who is called back for %s", fixture.ToneDuration(pcm, fixture.OtherTone))
	}
	d.BobPhone.Do("hangup", "")
	d.WaitQueueEntry(d.sales, "completed")
	caller.Wait()
}

// caller makes an inbound call and is silent.
func (d *company) caller(from string) *softphone.ActiveCall {
	d.T.Helper()
	phone, err := softphone.OutsideCallerAt(d.T.Context(), netip.MustParseAddr(d.way.IP), from, d.Server.SIP, slog.New(slog.DiscardHandler))
	if err != nil {
		d.T.Fatal(err)
	}
	d.T.Cleanup(phone.Close)
	ctx, cancel := context.WithTimeout(d.T.Context(), limit.Hang(0))
	defer cancel()
	line, err := phone.Call(ctx, d.way.Number)
	if err != nil {
		d.T.Fatal(err)
	}
	return line
}
