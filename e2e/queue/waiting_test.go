package queue

import (
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// TestWaiting_MusicUntilAnswer checks the audio of a caller from entering a queue to the answer.
func TestWaiting_MusicUntilAnswer(t *testing.T) {
	t.Parallel()
	rig.Either(t, rig.Options{Env: fixture.NoSpeech}, func(t *testing.T, s *rig.Server) {
		o := &fixture.Office{Org: fixture.NewOrg(s)}
		o.Ada, o.Bob = o.AddUser("Ada"), o.AddUser("Bob")
		o.AdaPhone = o.Phone(o.Ada, fixture.AdaTone, rig.PhoneOptions{})
		o.BobPhone = o.Phone(o.Bob, fixture.BobTone, rig.PhoneOptions{})
		id := o.AddQueue(map[string]any{"extension": "600", "wrap_up_seconds": 2,
			"music_audio_id":   o.UploadTone(fixture.MusicTone, 20*time.Second),
			"whisper_audio_id": o.UploadTone(fixture.WhisperTone, 2*time.Second)}, o.Ada)
		o.SetPresence(o.Ada, "away")
		o.BobPhone.Dial("600")
		o.WaitQueueEntry(id, "waiting")
		pcm := o.BobPhone.Since(o.BobPhone.Mark(), 2*time.Second)
		fixture.Hears(t, "the caller who waits", pcm, fixture.MusicTone, time.Second)
		if f := figuresOf(o.Org, id); f.Waiting != 1 || f.Agents.Available != 0 {
			t.Errorf("while the caller waits: %+v", f)
		}
		ada, bob := o.AdaPhone.Mark(), o.BobPhone.Mark()
		o.SetPresence(o.Ada, "available")
		o.AdaPhone.Wait("CALL_INCOMING", "")
		o.WaitQueueEntry(id, "offering")
		if f := figuresOf(o.Org, id); f.Agents.Ringing != 1 {
			t.Errorf("while ada rings: %+v", f)
		}
		o.AdaPhone.Do("accept", "")
		fixture.Hears(t, "the agent who answered", o.AdaPhone.Since(ada, 1500*time.Millisecond), fixture.WhisperTone, time.Second)
		o.AdaPhone.Since(ada, 3*time.Second)
		o.HearsOnly("Ada", o.AdaPhone, fixture.BobTone)
		o.HearsOnly("Bob", o.BobPhone, fixture.AdaTone)
		heard := o.BobPhone.Since(bob, 4*time.Second)
		fixture.HearsNot(t, "the caller", heard, fixture.WhisperTone, 0)
		if f := figuresOf(o.Org, id); f.Agents.Busy != 1 || f.Waiting != 0 || f.Today.Answered != 1 {
			t.Errorf("while they speak: %+v", f)
		}
		o.BobPhone.Do("hangup", "")
		o.WaitPresence(o.Ada, "wrap_up")
		o.WaitPresence(o.Ada, "available")
		if e := o.QueueEntries(id)[0]; e.Status != "completed" || e.Offers != 1 {
			t.Errorf("afterwards: %+v", e)
		}
		if r := queueRecordOf(o.Org, o.Bob.Extension); r.Queue.Name != "Support" || r.Waited < 2 || len(r.Offered) != 1 || r.Offered[0].Agent != o.Ada.ID || r.Offered[0].Result != "answered" {
			t.Errorf("record: %+v", r)
		}
	})
}

// TestWaiting_MovedRemovedAndReconfigured changes the queue while a caller waits in it.
func TestWaiting_MovedRemovedAndReconfigured(t *testing.T) {
	t.Parallel()
	o := &fixture.Office{Org: fixture.NewOrg(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))}
	o.Ada = o.AddUser("Ada")
	o.AdaPhone = o.Phone(o.Ada, fixture.AdaTone, rig.PhoneOptions{})
	id := o.AddQueue(map[string]any{"music_audio_id": o.UploadTone(2000, 10*time.Second)}, o.Ada)
	other := o.AddQueue(map[string]any{"name": "Other", "music_audio_id": o.UploadTone(1300, 10*time.Second)})
	o.SetPresence(o.Ada, "away")
	v := o.CallIn(addQueueCarrier(o.Org, id), "+12125550111")
	mark := v.WaitTone(0, 2000)
	o.Want(200, "PATCH", "/queues/"+id, map[string]any{"music_audio_id": o.UploadTone(700, 10*time.Second)}, nil)
	mark = v.WaitTone(mark, 700)
	e := o.WaitQueueEntry(id, "waiting")
	o.Want(200, "PATCH", "/queues/"+id+"/calls/"+e.CallID, map[string]any{"queue_id": other}, nil)
	v.WaitTone(mark, 1300)
	o.WaitQueueEntry(id, "exited")
	o.Want(201, "POST", "/queues/"+other+"/members", map[string]any{"user_id": o.Ada.ID}, nil)
	o.SetPresence(o.Ada, "available")
	o.AdaPhone.Wait("CALL_INCOMING", "")
	o.Want(200, "PUT", "/agents/"+o.Ada.ID+"/queues/"+other, map[string]any{"signed_in": false}, nil)
	o.AdaPhone.Wait("CALL_CLOSED", "")
	o.WaitQueueEntry(other, "waiting")
	o.Want(204, "DELETE", "/queues/"+other+"/calls/"+e.CallID+"?to=hangup", nil, nil)
	v.WaitEnd()
	if r := queueRecordOf(o.Org, "+12125550111"); r.Status != "missed" || r.EndReason != "api" || r.Queue.ID != other {
		t.Errorf("record %+v", r)
	}
}

// TestWaiting_PositionAnnounced proves that a waiting caller hears announcements between the music.
func TestWaiting_PositionAnnounced(t *testing.T) {
	t.Parallel()
	o := &fixture.Office{Org: fixture.NewOrg(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))}
	o.Ada = o.AddUser("Ada")
	id := o.AddQueue(map[string]any{"music_audio_id": o.UploadTone(2000, 5*time.Second), "announce": map[string]any{"position": true, "every_seconds": 60}}, o.Ada)
	v := o.CallIn(addQueueCarrier(o.Org, id), "+12125550111")
	v.WaitTone(0, 2000)
	words := o.WaitAnnouncement(20 * time.Second)
	if alike, at := fixture.Similarity(v.Since(0, fixture.SampleDuration(v.Mark()+len(words))+2*time.Second), words); alike < 0.7 {
		t.Errorf("the caller heard what is like the announcement by %.2f, at %s", alike, at)
	} else {
		v.WaitTone(int((at+fixture.SampleDuration(len(words))).Seconds()*8000), 2000)
	}
	v.Line.HangUp()
}

// TestAnswer_DuringAnnouncement lets an agent answer while the caller hears a long announcement. It ends, and both hear each other at once.
//
// https://github.com/signalwire/freeswitch/issues/1148
// https://github.com/signalwire/freeswitch/pull/1170
func TestAnswer_DuringAnnouncement(t *testing.T) {
	t.Parallel()
	o := &fixture.Office{Org: fixture.NewOrg(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))}
	o.Ada = o.AddUser("Ada")
	o.AdaPhone = o.Phone(o.Ada, fixture.AdaTone, rig.PhoneOptions{})
	id := o.AddQueue(map[string]any{"music_audio_id": o.UploadTone(2000, 5*time.Second),
		"announce": map[string]any{"audio_id": o.UploadTone(1300, 60*time.Second), "every_seconds": 60}}, o.Ada)
	o.SetPresence(o.Ada, "away")
	v := o.CallIn(addQueueCarrier(o.Org, id), "+12125550111")
	announced := v.WaitTone(0, 1300)
	o.SetPresence(o.Ada, "available")
	o.AdaPhone.Wait("CALL_INCOMING", "")
	v.WaitTone(announced, 1300) // it goes on while the agent rings
	ada := o.AdaPhone.Mark()
	o.AdaPhone.Do("accept", "")
	both := v.WaitTone(announced, fixture.AdaTone)
	fixture.HearsNot(t, "the caller after the answer", v.Since(both, 2*time.Second), 1300, 0)
	fixture.Hears(t, "the agent", o.AdaPhone.Since(ada, 2*time.Second), fixture.CallerTone, time.Second)
	v.Line.HangUp()
}
