package speech

import (
	"slices"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
)

// Both parties hear the recording announcement before they hear each other, and recording starts only afterwards.
func TestRecordingAnnouncement_BeforeConversation(t *testing.T) {
	t.Parallel()
	o := fixture.NewOfficeWithAnnouncement(t, fixture.NoSpeech)
	ada, bob := o.AdaPhone.Mark(), o.BobPhone.Mark()
	o.AdaPhone.Dial(o.Bob.Extension)
	words := o.WaitAnnouncement(5 * time.Second)
	ready := fixture.SampleDuration(max(o.AdaPhone.Mark()-ada, o.BobPhone.Mark()-bob))
	heard := ready + fixture.SampleDuration(len(words)) + time.Second
	r := talk(o, ada, bob)
	for who, pcm := range map[string][]int16{"Ada": o.AdaPhone.Since(ada, heard), "Bob": o.BobPhone.Since(bob, heard)} {
		if alike, at := fixture.Similarity(pcm, words); alike < 0.8 || at > ready+time.Second {
			t.Errorf("%s heard what is like the announcement by %.2f, at %s; it was synthesised at %s", who, alike, at, ready)
		}
	}
	wantRecordedAfter(o, r, fixture.SampleDuration(len(words)))
}

// Without a voice a tone replaces the spoken announcement.
func TestRecordingAnnouncement_ToneWithoutVoice(t *testing.T) {
	t.Parallel()
	o := fixture.NewOfficeWithAnnouncement(t, map[string]string{"SONIQ_TRANSCRIBER": "off", "SONIQ_VOICE": "off"})
	ada, bob := o.AdaPhone.Mark(), o.BobPhone.Mark()
	o.AdaPhone.Dial(o.Bob.Extension)
	r := talk(o, ada, bob)
	for who, pcm := range map[string][]int16{"Ada": o.AdaPhone.Since(ada, 2*time.Second), "Bob": o.BobPhone.Since(bob, 2*time.Second)} {
		if d := fixture.ToneDuration(pcm, fixture.AnnouncementTone); d < 300*time.Millisecond || d > 600*time.Millisecond {
			t.Errorf("%s heard the tone for %s", who, d)
		}
	}
	wantRecordedAfter(o, r, 400*time.Millisecond)
}

// talk waits until both parties hear each other, ends the call and returns its record.
func talk(o *fixture.Office, ada, bob int) fixture.CDR {
	o.T.Helper()
	o.AdaPhone.Since(ada, 2*time.Second)
	c := o.LiveCall(func(c map[string]any) bool { return c["recording"].(map[string]any)["state"] == "recording" })
	if consent := c["recording"].(map[string]any)["consent"]; consent != "announced" {
		o.T.Errorf("consent: %v", consent)
	}
	o.HearsOnly("Ada", o.AdaPhone, fixture.BobTone)
	o.HearsOnly("Bob", o.BobPhone, fixture.AdaTone)
	o.AdaPhone.Do("hangup", "")
	o.BobPhone.Wait("CALL_CLOSED", "")
	return o.CDR(o.Ada.Extension)
}

// wantRecordedAfter fails unless the recording begins when the announcement is over, with both tones.
func wantRecordedAfter(o *fixture.Office, r fixture.CDR, announcement time.Duration) {
	o.T.Helper()
	both := o.RecordingAudio(o.Recording(r.CallID).ID, "").PCM
	started := o.TimelineTime(r.CallID, "recording.started")
	if waited := started.Sub(o.TimelineTime(r.CallID, "recording.announced")); waited < announcement-200*time.Millisecond {
		o.T.Errorf("the recording starts %s after the announcement of %s", waited, announcement)
	}
	recorded, talk := fixture.SampleDuration(len(both[0])), r.EndedAt.Sub(started)
	if recorded < talk-time.Second || recorded > talk+200*time.Millisecond {
		o.T.Errorf("%s are recorded; the call ended %s after the recording had started", recorded, talk)
	}
	fixture.Hears(o.T, "the left channel", both[0], fixture.AdaTone, time.Second)
	fixture.Hears(o.T, "the right channel", both[1], fixture.BobTone, time.Second)
	fixture.HearsNot(o.T, "the left channel", both[0], fixture.AnnouncementTone, 0)
}

// If the law requires a notice, a request that starts a recording cannot omit it, neither by announce: false nor without the member.
func TestRecordingAnnouncement_ByRequest(t *testing.T) {
	t.Parallel()
	o := fixture.NewOfficeWithAnnouncement(t, map[string]string{"SONIQ_TRANSCRIBER": "off", "SONIQ_VOICE": "off"})
	o.Want(200, "PATCH", "/organization", map[string]any{"recording": map[string]any{"mode": "off", "announce": false, "consent": "notice"}}, nil)
	path := o.ConnectCall()
	r := o.Do("POST", path+"/recording/start", map[string]any{"announce": false})
	if r.Status != 422 || !strings.Contains(string(r.Body), `"announcement_required"`) {
		t.Errorf("a recording without a notice: %d %s", r.Status, r.Body)
	}
	if steps := o.TimelineSteps(path); slices.Contains(steps, "recording.started") {
		t.Errorf("it is recorded without a notice: %v", steps)
	}
	ada, bob := o.AdaPhone.Mark(), o.BobPhone.Mark()
	o.Want(200, "POST", path+"/recording/start", nil, nil)
	for who, pcm := range map[string][]int16{"Ada": o.AdaPhone.Since(ada, 2*time.Second), "Bob": o.BobPhone.Since(bob, 2*time.Second)} {
		if d := fixture.ToneDuration(pcm, fixture.AnnouncementTone); d < 300*time.Millisecond || d > 600*time.Millisecond {
			t.Errorf("%s heard the tone for %s", who, d)
		}
	}
	c := o.LiveCall(nil)
	if rec := c["recording"].(map[string]any); rec["state"] != "recording" || rec["consent"] != "announced" {
		t.Errorf("the recording is %v", rec)
	}
	o.AdaPhone.Do("hangup", "")
	o.BobPhone.Wait("CALL_CLOSED", "")
	call := o.CDR(o.Ada.Extension)
	if waited := o.TimelineTime(call.CallID, "recording.started").Sub(o.TimelineTime(call.CallID, "recording.announced")); waited < 200*time.Millisecond {
		t.Errorf("the recording starts %s after the notice", waited)
	}
}
