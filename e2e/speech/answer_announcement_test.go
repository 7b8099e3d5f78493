package speech

import (
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// announcementText is the announcement that Bob hears first.
const announcementText = "This is a call about your order. Please stay on the line."

// newPlacingOffice makes an office where calls are placed for Ada, and Bob answers at once.
func newPlacingOffice(t *testing.T, env map[string]string) *fixture.Office {
	t.Helper()
	o := &fixture.Office{Org: fixture.NewOrg(rig.Start(t, rig.Options{Env: env}))}
	o.Ada, o.Bob = o.AddUser("Ada"), o.AddUser("Bob")
	o.AdaPhone = o.Phone(o.Ada, fixture.AdaTone, rig.PhoneOptions{Auto: true})
	o.BobPhone = o.Phone(o.Bob, fixture.BobTone, rig.PhoneOptions{Auto: true})
	return o
}

// The called party hears the announcement alone, before it is connected to the caller.
func TestAnswerAnnouncement_BeforeCallerHeard(t *testing.T) {
	t.Parallel()
	o := newPlacingOffice(t, fixture.NoSpeech)
	ada, bob := o.AdaPhone.Mark(), o.BobPhone.Mark()
	o.Want(201, "POST", "/calls", map[string]any{"to": "ext:" + o.Bob.Extension, "user_id": o.Ada.ID, "announce_text": announcementText}, nil)
	o.BobPhone.Wait("CALL_ESTABLISHED", "")
	words := o.WaitAnnouncement(5 * time.Second)
	end := wantAnnouncement(o, bob, words, fixture.AdaTone)
	fixture.HearsNot(t, "Ada, while Bob is told", o.AdaPhone.Since(ada, end-500*time.Millisecond), fixture.BobTone, 0)
	o.HearsOnly("Ada", o.AdaPhone, fixture.BobTone)
	o.HearsOnly("Bob", o.BobPhone, fixture.AdaTone)
	o.AdaPhone.Do("hangup", "")
	r := o.CDR(o.Ada.Extension)
	if r.String() != "internal completed caller_hangup caller 0" {
		t.Errorf("record: %s", r)
	}
	both := o.RecordingAudio(o.Recording(r.CallID).ID, "").PCM
	fixture.Hears(t, "the left channel", both[0], fixture.AdaTone, time.Second)
	fixture.Hears(t, "the right channel", both[1], fixture.BobTone, time.Second)
}

// wantAnnouncement fails unless Bob hears the words before a tone, within a second of their synthesis. It returns when the words end.
func wantAnnouncement(o *fixture.Office, bob int, words []int16, after float64) (end time.Duration) {
	o.T.Helper()
	ready := fixture.SampleDuration(o.BobPhone.Mark() - bob)
	pcm := o.BobPhone.Since(bob, ready+fixture.SampleDuration(len(words))+3*time.Second)
	alike, at := fixture.Similarity(pcm, words)
	if alike < 0.8 || at > ready+time.Second {
		o.T.Fatalf("Bob heard what is like the words by %.2f, at %s; they were synthesised at %s", alike, at, ready)
	}
	end = at + fixture.SampleDuration(len(words))
	fixture.HearsNot(o.T, "Bob, with the words", pcm[:int(end.Seconds()*8000)], after, 100*time.Millisecond)
	fixture.Hears(o.T, "Bob, after the words", pcm[int(end.Seconds()*8000):], after, time.Second)
	return end
}

// The caller hears early media of a carrier until the answer, and not during the announcement.
func TestAnswerAnnouncement_EarlyMediaStops(t *testing.T) {
	t.Parallel()
	o := newPlacingOffice(t, fixture.NoSpeech)
	way := o.AddCarrier(o.Ada.ID, nil)
	_, ulaw := fixture.Tone(t, fixture.CarolTone)
	carrier := o.Server.Sipp(rig.Script{Scenario: "answer_early", IP: way.IP, Port: way.Port, Play: ulaw, Talk: 2 * time.Second})
	ada := o.AdaPhone.Mark()
	o.Want(201, "POST", "/calls", map[string]any{"to": "+12125550142", "user_id": o.Ada.ID, "announce_text": announcementText}, nil)
	words := fixture.SampleDuration(len(o.WaitAnnouncement(10 * time.Second)))
	pcm := o.AdaPhone.Since(ada, 4*time.Second+words)
	fixture.Hears(t, "Ada, before the answer", pcm[:3*8000], fixture.CarolTone, time.Second)
	gap, longest := time.Duration(0), time.Duration(0)
	begun := false
	for i := 0; i+800 <= len(pcm); i += 800 {
		if fixture.ToneDuration(pcm[i:i+800], fixture.CarolTone) > 0 {
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
	fixture.Hears(t, "Ada, at last", pcm[len(pcm)-8000:], fixture.CarolTone, 400*time.Millisecond)
	o.AdaPhone.Do("hangup", "")
	carrier.Wait()
}

// A called party that is routed to a flow hears the announcement before the flow.
func TestAnswerAnnouncement_BeforeFlow(t *testing.T) {
	t.Parallel()
	o := newPlacingOffice(t, fixture.NoSpeech)
	f := o.AddFlow(fixture.Node("hello", "play", map[string]any{"audio_id": o.UploadTone(fixture.CarolTone, 6*time.Second)}, "done", "bye"), fixture.Node("bye", "hangup", nil))
	bob := o.BobPhone.Mark()
	o.Want(201, "POST", "/calls", map[string]any{"to": "ext:" + o.Bob.Extension, "flow_id": f, "announce_text": announcementText}, nil)
	o.BobPhone.Wait("CALL_ESTABLISHED", "")
	wantAnnouncement(o, bob, o.WaitAnnouncement(5*time.Second), fixture.CarolTone)
	o.BobPhone.Wait("CALL_CLOSED", "")
}

// A user with a ring strategy also hears the announcement first.
func TestAnswerAnnouncement_AfterRingInOrder(t *testing.T) {
	t.Parallel()
	o := newPlacingOffice(t, fixture.NoSpeech)
	o.UpdateUser(o.Bob, map[string]any{"ring_strategy": "in_order"})
	ada, bob := o.AdaPhone.Mark(), o.BobPhone.Mark()
	o.Want(201, "POST", "/calls", map[string]any{"to": "ext:" + o.Bob.Extension, "user_id": o.Ada.ID, "announce_text": announcementText}, nil)
	o.BobPhone.Wait("CALL_ESTABLISHED", "")
	end := wantAnnouncement(o, bob, o.WaitAnnouncement(5*time.Second), fixture.AdaTone)
	fixture.HearsNot(t, "Ada, while Bob is told", o.AdaPhone.Since(ada, end-500*time.Millisecond), fixture.BobTone, 0)
	o.HearsOnly("Bob", o.BobPhone, fixture.AdaTone)
	mark := o.AdaPhone.Mark()
	o.AdaPhone.Since(mark, 600*time.Millisecond)
	pcm := o.AdaPhone.Since(mark, 6*time.Second)[4800:]
	fixture.Hears(t, "Ada", pcm, fixture.BobTone, 4*time.Second)
	fixture.HearsNot(t, "Ada, who talks", pcm, 480, 200*time.Millisecond) // of a ringing tone
}

// If the called party hangs up during the announcement, the call ends.
func TestAnswerAnnouncement_HangupEndsCall(t *testing.T) {
	t.Parallel()
	o := newPlacingOffice(t, fixture.NoSpeech)
	o.Want(201, "POST", "/calls", map[string]any{"to": "ext:" + o.Bob.Extension, "user_id": o.Ada.ID, "announce_text": announcementText}, nil)
	o.BobPhone.Wait("CALL_ESTABLISHED", "")
	o.WaitAnnouncement(5 * time.Second)
	o.BobPhone.Do("hangup", "")
	o.AdaPhone.Wait("CALL_CLOSED", "")
	if r := o.CDR(o.Ada.Extension); r.String() != "internal completed agent_hangup agent 0" {
		t.Errorf("record: %s", r)
	}
}

// Without a voice the request is refused, and no telephone rings.
func TestAnswerAnnouncement_RefusedWithoutVoice(t *testing.T) {
	t.Parallel()
	o := newPlacingOffice(t, map[string]string{"SONIQ_TRANSCRIBER": "off", "SONIQ_VOICE": "off"})
	refused := o.Do("POST", "/calls", map[string]any{"to": "ext:" + o.Bob.Extension, "user_id": o.Ada.ID, "announce_text": announcementText}).JSON()
	if refused["code"] != "not_enabled" || refused["reason"] != "no_engine" {
		t.Errorf("refused with %v", refused)
	}
	var all struct{ Data []any }
	if o.Want(200, "GET", "/calls", nil, &all); len(all.Data) != 0 {
		t.Errorf("%d calls were placed", len(all.Data))
	}
	o.AdaPhone.Dial(o.Bob.Extension)
	path := "/calls/" + o.LiveCall(func(c map[string]any) bool { return c["status"] == "in_progress" })["id"].(string)
	said := o.Do("POST", path+"/announce", map[string]any{"text": "hello"}).JSON()
	if said["code"] != refused["code"] || said["detail"] != refused["detail"] {
		t.Errorf("an announcement is refused with %v, the call with %v", said, refused)
	}
}
