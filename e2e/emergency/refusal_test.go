package emergency

import (
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// If no carrier can take an emergency call, the caller hears that they must use another phone. Then the call is
// refused.
func TestEmergencyRefusal_Spoken(t *testing.T) {
	t.Parallel()
	o := fixture.NewOfficeWithAnnouncement(t, fixture.NoSpeech)
	heard := refusalInWords(o)
	words := o.WaitAnnouncement(5 * time.Second)
	most := words[:len(words)*8/10]
	// The words begin within two seconds, as soon as they are synthesised.
	if alike, at := fixture.Similarity(heard, most); alike < 0.8 || at > 3*time.Second {
		t.Errorf("Ada heard what is like the words by %.2f, at %s", alike, at)
	}
}

// refusalInWords makes Ada call for help until the refusal is spoken, and returns what she heard then. On a busy machine the
// synthesis takes longer than two seconds at first, and tones replace the words.
func refusalInWords(o *fixture.Office) []int16 {
	o.T.Helper()
	seen := map[string]bool{}
	for n := 1; n <= 4; n++ {
		o.AdaPhone.Do("dial", "911")
		o.AdaPhone.Wait("CALL_CLOSED", "503")
		for _, r := range o.CDRs(n, "phone="+o.Ada.Extension) {
			if seen[r.CallID] {
				continue
			}
			seen[r.CallID] = true
			if r.String() != "outbound failed no_route system 503" || r.Total > 12 {
				o.T.Errorf("record: %s after %d s", r, r.Total)
			}
			if o.WaitTimelineStep(r.CallID, "emergency.unavailable")["spoken"] == true {
				return o.AdaPhone.Since(0, fixture.SampleDuration(o.AdaPhone.Mark()))
			}
		}
	}
	o.T.Fatal("the refusal was never spoken")
	return nil
}

// Without a voice, tones replace the spoken refusal.
func TestEmergencyRefusal_TonesWithoutVoice(t *testing.T) {
	t.Parallel()
	o := fixture.NewOfficeWithAnnouncement(t, map[string]string{"SONIQ_TRANSCRIBER": "off", "SONIQ_VOICE": "off"})
	ada := o.AdaPhone.Mark()
	o.AdaPhone.Do("dial", "112")
	wantEmergencyRefused(o)
	pcm := o.AdaPhone.Since(ada, 2500*time.Millisecond)
	for _, hz := range []float64{950, 1400, 1800} {
		if d := fixture.ToneDuration(pcm, hz); d < 300*time.Millisecond || d > 900*time.Millisecond {
			t.Errorf("Ada heard %.0f Hz for %s", hz, d)
		}
	}
}

// wantEmergencyRefused waits for the refusal, and for the record.
func wantEmergencyRefused(o *fixture.Office) {
	o.T.Helper()
	if e := o.AdaPhone.Wait("CALL_CLOSED", ""); !strings.Contains(e.Param, "503") {
		o.T.Errorf("the call was closed with %q", e.Param)
	}
	if r := o.CDR(o.Ada.Extension); r.String() != "outbound failed no_route system 503" || r.Total > 12 {
		o.T.Errorf("record: %s after %d s", r, r.Total)
	}
}

// A telephone whose INVITE has no SDP cannot receive the announcement. It is refused at once, so that it can try
// another line.
func TestEmergencyRefusal_AtOnceWithoutOffer(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	user := company.AddUser("Ada")
	s.Sipp(rig.Script{Scenario: "call_refused", Login: &user.SIP, Number: "911", LateOffer: true, Status: 503}).Wait()
	if r := company.CDR("911"); r.String() != "outbound failed no_route system 503" || r.EndedAt.Sub(r.StartedAt) > 2*time.Second {
		t.Errorf("record: %s after %s", r, r.EndedAt.Sub(r.StartedAt))
	}
}
