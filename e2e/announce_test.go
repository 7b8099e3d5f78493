package e2e

import (
	"math"
	"path/filepath"
	"testing"
	"time"

	"soniq/e2e/rig"
	"soniq/media"
)

// recordedTone is heard where nothing can speak.
const recordedTone = 1400

// Both sides hear that they will be recorded before they hear each other, and nothing is recorded before.
func TestARecordingIsAnnouncedBeforeTheConversation(t *testing.T) {
	t.Parallel()
	o := announced(t, quiet)
	ada, bob := o.adaPhone.Mark(), o.bobPhone.Mark()
	o.adaPhone.Dial(o.bob.Extension)
	words := o.said(5 * time.Second)
	r := o.converse(ada, bob)
	for who, pcm := range map[string][]int16{"Ada": o.adaPhone.Since(ada, 4*time.Second), "Bob": o.bobPhone.Since(bob, 4*time.Second)} {
		if alike, at := likeness(pcm, words); alike < 0.8 || at > time.Second {
			t.Errorf("%s heard what is like the announcement by %.2f, at %s", who, alike, at)
		}
	}
	o.recordedAfter(r, seconds(len(words)))
}

// Where nothing can speak a tone stands for the words.
func TestARecordingIsAnnouncedByATone(t *testing.T) {
	t.Parallel()
	o := announced(t, map[string]string{"SONIQ_TRANSCRIBER": "off", "SONIQ_VOICE": "off"})
	ada, bob := o.adaPhone.Mark(), o.bobPhone.Mark()
	o.adaPhone.Dial(o.bob.Extension)
	r := o.converse(ada, bob)
	for who, pcm := range map[string][]int16{"Ada": o.adaPhone.Since(ada, 2*time.Second), "Bob": o.bobPhone.Since(bob, 2*time.Second)} {
		if d := presence(pcm, recordedTone); d < 300*time.Millisecond || d > 600*time.Millisecond {
			t.Errorf("%s heard the tone for %s", who, d)
		}
	}
	o.recordedAfter(r, 400*time.Millisecond)
}

// announced is an office whose recordings are announced.
func announced(t *testing.T, env map[string]string) *office {
	t.Helper()
	o := &office{site: newSite(rig.Start(t, rig.Options{Env: env}))}
	o.Want(200, "PATCH", "/organization", map[string]any{"recording": map[string]any{"announce": true}}, nil)
	o.ada, o.bob = o.AddUser("Ada"), o.AddUser("Bob")
	o.adaPhone = o.phone(o.ada, adaTone, rig.PhoneOptions{})
	o.bobPhone = o.phone(o.bob, bobTone, rig.PhoneOptions{Auto: true})
	return o
}

// converse waits until both hear each other for a while, and returns the record of the call.
func (o *office) converse(ada, bob int) cdr {
	o.T.Helper()
	o.adaPhone.Since(ada, 2*time.Second)
	c := o.live(func(c map[string]any) bool { return c["recording"].(map[string]any)["state"] == "recording" })
	if consent := c["recording"].(map[string]any)["consent"]; consent != "announced" {
		o.T.Errorf("consent: %v", consent)
	}
	o.talks("Ada", o.adaPhone, bobTone)
	o.talks("Bob", o.bobPhone, adaTone)
	o.adaPhone.Do("hangup", "")
	o.bobPhone.Wait("CALL_CLOSED", "")
	return o.record(o.ada.Extension)
}

// said waits for the announcement that the server made, and returns it at 8 kHz.
func (o *office) said(limit time.Duration) (pcm []int16) {
	o.T.Helper()
	rig.Until(o.T, "the announcement", limit, func() bool {
		found, _ := filepath.Glob(filepath.Join(o.Server.Data, "speech", "*", "*.wav"))
		more, _ := filepath.Glob(filepath.Join(o.Server.Data, "speech", "*.wav"))
		if found = append(found, more...); len(found) != 1 {
			return false
		}
		w, err := media.ReadWAV(found[0])
		if err == nil {
			pcm = narrow(w)
		}
		return err == nil
	})
	return pcm
}

// recordedAfter fails unless the recording begins when the announcement is over, with both tones.
func (o *office) recordedAfter(r cdr, announcement time.Duration) {
	o.T.Helper()
	both := o.audio(o.recording(r.CallID).ID, "").PCM
	talk := r.EndedAt.Sub(*r.AnsweredAt)
	if missing := talk - seconds(len(both[0])); missing < announcement-200*time.Millisecond || missing > announcement+2*time.Second {
		o.T.Errorf("%s of a call of %s are recorded; the announcement took %s", seconds(len(both[0])), talk, announcement)
	}
	hears(o.T, "the left channel", both[0], adaTone, time.Second)
	hears(o.T, "the right channel", both[1], bobTone, time.Second)
	hearsNot(o.T, "the left channel", both[0], recordedTone, 0)
}

// likeness is how alike the loudness of audio and of words in it runs, by 20 ms, and where in it they begin.
func likeness(pcm, words []int16) (best float64, at time.Duration) {
	a, b := envelope(pcm), envelope(words)
	for from := 0; from+len(b) <= len(a); from++ {
		if r := correlation(a[from:from+len(b)], b); r > best {
			best, at = r, time.Duration(from)*20*time.Millisecond
		}
	}
	return best, at
}

func envelope(pcm []int16) (all []float64) {
	for i := 0; i+160 <= len(pcm); i += 160 {
		all = append(all, math.Pow(10, loudness(pcm[i:i+160])/20))
	}
	return all
}

func correlation(a, b []float64) float64 {
	var ma, mb float64
	for i := range a {
		ma, mb = ma+a[i]/float64(len(a)), mb+b[i]/float64(len(b))
	}
	var ab, aa, bb float64
	for i := range a {
		ab, aa, bb = ab+(a[i]-ma)*(b[i]-mb), aa+(a[i]-ma)*(a[i]-ma), bb+(b[i]-mb)*(b[i]-mb)
	}
	return ab / math.Sqrt(max(aa*bb, 1e-9))
}
