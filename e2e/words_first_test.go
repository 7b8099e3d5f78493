package e2e

import (
	"testing"
	"time"

	"soniq/e2e/rig"
)

const toldFirst = "This is a call about your order. Please stay on the line."

// placed is Ada and Bob at telephones, where calls are placed for Ada; Bob picks up by himself.
func placed(t *testing.T, env map[string]string) *office {
	t.Helper()
	o := &office{site: newSite(rig.Start(t, rig.Options{Env: env}))}
	o.ada, o.bob = o.AddUser("Ada"), o.AddUser("Bob")
	o.adaPhone = o.phone(o.ada, adaTone, rig.PhoneOptions{Auto: true})
	o.bobPhone = o.phone(o.bob, bobTone, rig.PhoneOptions{Auto: true})
	return o
}

// Who answers hears what is to be said to them, alone and before they hear the caller.
func TestWhoAnswersIsToldFirst(t *testing.T) {
	t.Parallel()
	o := placed(t, quiet)
	ada, bob := o.adaPhone.Mark(), o.bobPhone.Mark()
	o.Want(201, "POST", "/calls", map[string]any{"to": "ext:" + o.bob.Extension, "user_id": o.ada.ID, "announce_text": toldFirst}, nil)
	o.bobPhone.Wait("CALL_ESTABLISHED", "")
	words := o.said(5 * time.Second)
	end := o.hearsFirst(bob, words, adaTone)
	hearsNot(t, "Ada, while Bob is told", o.adaPhone.Since(ada, end-500*time.Millisecond), bobTone, 0)
	o.talks("Ada", o.adaPhone, bobTone)
	o.talks("Bob", o.bobPhone, adaTone)
	o.adaPhone.Do("hangup", "")
	r := o.record(o.ada.Extension)
	if r.String() != "internal completed caller_hangup caller 0" {
		t.Errorf("record: %s", r)
	}
	both := o.audio(o.recording(r.CallID).ID, "").PCM
	hears(t, "the left channel", both[0], adaTone, time.Second)
	hears(t, "the right channel", both[1], bobTone, time.Second)
}

// hearsFirst fails unless Bob hears the words before the tone of who comes after, and returns when they end.
func (o *office) hearsFirst(bob int, words []int16, after float64) (end time.Duration) {
	o.T.Helper()
	pcm := o.bobPhone.Since(bob, seconds(len(words))+3*time.Second)
	alike, at := likeness(pcm, words)
	if alike < 0.8 || at > 1500*time.Millisecond {
		o.T.Fatalf("Bob heard what is like the words by %.2f, at %s", alike, at)
	}
	end = at + seconds(len(words))
	hearsNot(o.T, "Bob, with the words", pcm[:int(end.Seconds()*8000)], after, 100*time.Millisecond)
	hears(o.T, "Bob, after the words", pcm[int(end.Seconds()*8000):], after, time.Second)
	return end
}

// What a carrier plays before somebody answers is heard until then, and not while they are told.
func TestACarriersEarlyMediaStopsWhenWhoAnswersIsTold(t *testing.T) {
	t.Parallel()
	o := placed(t, quiet)
	way := o.carrier(o.ada.ID, nil)
	_, ulaw := tone(t, carolTone)
	carrier := o.Server.Sipp(rig.Script{Scenario: "answer_early", IP: way.ip, Port: way.port, Play: ulaw, Talk: 2 * time.Second})
	ada := o.adaPhone.Mark()
	o.Want(201, "POST", "/calls", map[string]any{"to": "+12125550142", "user_id": o.ada.ID, "announce_text": toldFirst}, nil)
	words := seconds(len(o.said(10 * time.Second)))
	pcm := o.adaPhone.Since(ada, 4*time.Second+words)
	hears(t, "Ada, before the answer", pcm[:3*8000], carolTone, time.Second)
	gap, longest := time.Duration(0), time.Duration(0)
	begun := false
	for i := 0; i+800 <= len(pcm); i += 800 {
		if presence(pcm[i:i+800], carolTone) > 0 {
			begun, gap = true, 0
			continue
		}
		if gap += 100 * time.Millisecond; begun {
			longest = max(longest, gap)
		}
	}
	if longest < words-500*time.Millisecond || longest > words+time.Second {
		t.Errorf("Ada heard nothing of the carrier for %s; the words take %s", longest, words)
	}
	hears(t, "Ada, at last", pcm[len(pcm)-8000:], carolTone, 400*time.Millisecond)
	o.adaPhone.Do("hangup", "")
	carrier.Wait()
}

// Who is led hears it before they are.
func TestWhoAnswersIsToldBeforeTheyAreLed(t *testing.T) {
	t.Parallel()
	o := placed(t, quiet)
	f := o.flow(node("hello", "play", map[string]any{"audio_id": o.sound(carolTone, 3*time.Second)}, "done", "bye"), node("bye", "hangup", nil))
	bob := o.bobPhone.Mark()
	o.Want(201, "POST", "/calls", map[string]any{"to": "ext:" + o.bob.Extension, "flow_id": f, "announce_text": toldFirst}, nil)
	o.bobPhone.Wait("CALL_ESTABLISHED", "")
	o.hearsFirst(bob, o.said(5*time.Second), carolTone)
	o.bobPhone.Wait("CALL_CLOSED", "")
}

// Who wants more of calls than that their telephones ring is told first too.
func TestWhoIsFoundForTheCallerIsToldFirst(t *testing.T) {
	t.Parallel()
	o := placed(t, quiet)
	o.wants(o.bob, map[string]any{"ring_strategy": "in_order"})
	ada, bob := o.adaPhone.Mark(), o.bobPhone.Mark()
	o.Want(201, "POST", "/calls", map[string]any{"to": "ext:" + o.bob.Extension, "user_id": o.ada.ID, "announce_text": toldFirst}, nil)
	o.bobPhone.Wait("CALL_ESTABLISHED", "")
	end := o.hearsFirst(bob, o.said(5*time.Second), adaTone)
	hearsNot(t, "Ada, while Bob is told", o.adaPhone.Since(ada, end-500*time.Millisecond), bobTone, 0)
	o.talks("Bob", o.bobPhone, adaTone)
	mark := o.adaPhone.Mark()
	o.adaPhone.Since(mark, 600*time.Millisecond)
	pcm := o.adaPhone.Since(mark, 6*time.Second)[4800:]
	hears(t, "Ada", pcm, bobTone, 4*time.Second)
	hearsNot(t, "Ada, who talks", pcm, 480, 200*time.Millisecond) // of a ringing tone
}

// Who hangs up while they are told ends the call.
func TestWhoHangsUpWhileTheyAreToldEndsTheCall(t *testing.T) {
	t.Parallel()
	o := placed(t, quiet)
	o.Want(201, "POST", "/calls", map[string]any{"to": "ext:" + o.bob.Extension, "user_id": o.ada.ID, "announce_text": toldFirst}, nil)
	o.bobPhone.Wait("CALL_ESTABLISHED", "")
	o.said(5 * time.Second)
	o.bobPhone.Do("hangup", "")
	o.adaPhone.Wait("CALL_CLOSED", "")
	if r := o.record(o.ada.Extension); r.String() != "internal completed agent_hangup agent 0" {
		t.Errorf("record: %s", r)
	}
}

// Where nothing can speak no telephone rings.
func TestACallWhoseWordsNothingCanSpeakIsNotPlaced(t *testing.T) {
	t.Parallel()
	o := placed(t, map[string]string{"SONIQ_TRANSCRIBER": "off", "SONIQ_VOICE": "off"})
	refused := o.Do("POST", "/calls", map[string]any{"to": "ext:" + o.bob.Extension, "user_id": o.ada.ID, "announce_text": toldFirst}).JSON()
	if refused["code"] != "not_enabled" || refused["reason"] != "no_engine" {
		t.Errorf("refused with %v", refused)
	}
	var all struct{ Data []any }
	if o.Want(200, "GET", "/calls", nil, &all); len(all.Data) != 0 {
		t.Errorf("%d calls were placed", len(all.Data))
	}
	o.adaPhone.Dial(o.bob.Extension)
	path := "/calls/" + o.live(func(c map[string]any) bool { return c["status"] == "in_progress" })["id"].(string)
	said := o.Do("POST", path+"/announce", map[string]any{"text": "hello"}).JSON()
	if said["code"] != refused["code"] || said["detail"] != refused["detail"] {
		t.Errorf("an announcement is refused with %v, the call with %v", said, refused)
	}
}
