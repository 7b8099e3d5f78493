package e2e

import (
	"fmt"
	"testing"
	"time"

	"soniq/e2e/rig"
)

func TestDigitsByRequestReachATelephoneEveryWay(t *testing.T) {
	t.Parallel()
	for _, codec := range []string{"PCMU/8000", "G722/16000"} {
		t.Run(codec, func(t *testing.T) {
			t.Parallel()
			o := &office{site: newSite(rig.Start(t, rig.Options{Env: quiet}))}
			o.ada, o.bob = o.AddUser("Ada"), o.AddUser("Bob")
			o.adaPhone = o.phone(o.ada, adaTone, rig.PhoneOptions{Codecs: codec})
			o.bobPhone = o.phone(o.bob, bobTone, rig.PhoneOptions{Auto: true, Codecs: codec})
			o.adaPhone.Dial(o.bob.Extension)
			o.bobPhone.Wait("CALL_ESTABLISHED", "")
			path := "/calls/" + o.live(nil)["id"].(string)
			o.adaPhone.Listen(time.Second)
			o.press(path, "rfc4733", "1*", 160)
			o.adaPhone.Wait("CALL_DTMF_START", "1")
			o.adaPhone.Wait("CALL_DTMF_START", "*")
			o.press(path, "info", "7#", 160)
			o.adaPhone.Wait("CALL_DTMF_START", "7")
			o.adaPhone.Wait("CALL_DTMF_START", "#")
			o.adaPhone.Listen(time.Duration(wider[codec]) * 3 * time.Second)
			o.press(path, "inband", "2w9", 400)
			o.adaPhone.Listen(time.Duration(wider[codec]) * 7 * time.Second)
			heard := narrow(read(t, o.adaPhone.Close()))
			for key, hz := range map[string][2]float64{"2": {697, 1336}, "9": {852, 1477}} {
				if d := both(heard, hz); d < 250*time.Millisecond || d > 600*time.Millisecond {
					t.Errorf("the tones of %s were heard for %s", key, d)
				}
			}
			for key, hz := range map[string][2]float64{"1": {697, 1209}, "7": {852, 1209}, "*": {941, 1209}} {
				if d := both(heard, hz); d > 0 {
					t.Errorf("the tones of %s, which was sent another way, were heard for %s", key, d)
				}
			}
		})
	}
}

// A linphonec is called, and tells which keys it was sent.
func TestDigitsByRequestReachLinphone(t *testing.T) {
	t.Parallel()
	o, bob := withLinphone(t)
	bob.Dial(o.ada.Extension)
	path := "/calls/" + o.live(nil)["id"].(string)
	for method, digit := range map[string]string{"rfc4733": "4", "info": "8"} {
		o.press(path, method, digit, 160)
		bob.Wait(fmt.Sprintf(`Receiving tone %s from`, digit))
	}
}

// The keys of a telephone that sends them as events are heard as tones by one that agreed to none: it sends back what it hears.
func TestEventsAreTonesForATelephoneThatTakesNone(t *testing.T) {
	t.Parallel()
	for _, codec := range []string{"PCMU/8000", "PCMA/8000"} { // the other takes PCMU only
		t.Run(codec, func(t *testing.T) {
			t.Parallel()
			o := &office{site: newSite(rig.Start(t, rig.Options{Env: quiet}))}
			o.ada, o.bob = o.AddUser("Ada"), o.AddUser("Bob")
			o.adaPhone = o.phone(o.ada, adaTone, rig.PhoneOptions{Codecs: codec})
			echo := o.Server.Sipp(rig.Script{Scenario: "answer", NoEvents: true, Echo: true, Port: o.sippPhone(o.bob.SIP), From: o.bob.SIP.Username})
			o.adaPhone.Dial(o.bob.Extension)
			hears(t, "Ada, herself,", o.adaPhone.Since(o.adaPhone.Mark(), 2*time.Second), adaTone, time.Second)
			from := o.adaPhone.Mark()
			for _, key := range []string{"1", "5", "#"} {
				o.adaPhone.Do("sndcode", key)
			}
			heard := o.adaPhone.Since(from, 4*time.Second)
			for key, hz := range map[string][2]float64{"1": {697, 1209}, "5": {770, 1336}, "#": {941, 1477}} {
				if d := both(heard, hz); d < 50*time.Millisecond || d > 400*time.Millisecond { // the first is held longest
					t.Errorf("the tones of %s were heard for %s", key, d)
				}
			}
			hears(t, "Ada, herself, afterwards", o.adaPhone.Since(o.adaPhone.Mark(), 2*time.Second), adaTone, time.Second)
			o.adaPhone.Do("hangup", "")
			echo.Wait()
		})
	}
}

// On a call that is mixed, keys go to whom a voice goes to: a supervisor hears them, and is heard pressing them by those
// they speak to.
func TestKeysOnASupervisedCall(t *testing.T) {
	t.Parallel()
	o := newOffice(rig.Start(t, rig.Options{Env: quiet}))
	_, monitor := o.supervised()
	o.adaPhone.Do("sndcode", "5")
	nextKey(o.bobPhone, "5")
	nextKey(o.carolPhone, "5")
	o.carolPhone.Do("sndcode", "1") // silent: nobody hears it
	o.bobPhone.Do("sndcode", "9")
	nextKey(o.adaPhone, "9")
	nextKey(o.carolPhone, "9")
	o.Want(200, "PATCH", monitor, map[string]any{"mode": "whisper"}, nil)
	o.talks("Bob, whispered to,", o.bobPhone, adaTone, carolTone)
	o.carolPhone.Do("sndcode", "2")
	nextKey(o.bobPhone, "2")
	o.Want(200, "PATCH", monitor, map[string]any{"mode": "barge"}, nil)
	o.talks("Ada", o.adaPhone, bobTone, carolTone)
	o.carolPhone.Do("sndcode", "3")
	nextKey(o.adaPhone, "3")
	nextKey(o.bobPhone, "3")
	o.talks("Ada, afterwards,", o.adaPhone, bobTone, carolTone)
}

// Keys by INFO go to all who are in a conference as well.
func TestKeysByINFOInAConference(t *testing.T) {
	t.Parallel()
	o := newOffice(rig.Start(t, rig.Options{Env: quiet}))
	dora := o.handset("Dora", nil)
	call := dora.dial(o.bob.Extension)
	o.bobPhone.Wait("CALL_ESTABLISHED", "")
	path := "/calls/" + o.live(nil)["id"].(string)
	o.Want(201, "POST", path+"/participants", map[string]any{"to": o.carol.Extension}, nil)
	o.carolPhone.Wait("CALL_ESTABLISHED", "")
	o.talks("Carol, added,", o.carolPhone, bobTone)
	call.is().press("8#")
	nextKey(o.carolPhone, "8")
	nextKey(o.carolPhone, "#")
	call.hangUp()
}

// Who takes no events hears the keys of a conference as tones: it sends back what it hears, which is recorded as what it says.
func TestKeysInAConferenceAreTonesForWhoTakesNone(t *testing.T) {
	t.Parallel()
	o := newOffice(rig.Start(t, rig.Options{Env: quiet}))
	dave := o.AddUser("Dave")
	echo := o.Server.Sipp(rig.Script{Scenario: "answer", NoEvents: true, Echo: true, Port: o.sippPhone(dave.SIP), From: dave.SIP.Username})
	o.adaPhone.Dial(dave.Extension)
	id := o.live(nil)["id"].(string)
	o.Want(201, "POST", "/calls/"+id+"/participants", map[string]any{"to": o.carol.Extension}, nil)
	o.carolPhone.Wait("CALL_ESTABLISHED", "")
	o.talks("Carol, whose voice comes back,", o.carolPhone, adaTone, carolTone)
	o.carolPhone.Do("sndcode", "5")
	nextKey(o.adaPhone, "5")
	o.talks("Carol, afterwards,", o.carolPhone, adaTone, carolTone)
	o.adaPhone.Do("hangup", "")
	o.carolPhone.Do("hangup", "")
	echo.Wait()
	r := o.record(o.ada.Extension)
	if d := both(o.audio(o.recording(r.CallID).ID, "").PCM[1], [2]float64{770, 1336}); d < 50*time.Millisecond || d > 400*time.Millisecond {
		t.Errorf("the tones of a 5 were heard for %s", d)
	}
}

// nextKey is the next that a telephone was told, and no other.
func nextKey(p *rig.Phone, want string) {
	p.T.Helper()
	if got := p.Wait("CALL_DTMF_START", "").Param; got != want {
		p.T.Errorf("the next key is %q, want %q", got, want)
	}
}

// press sends digits to who called.
func (o *office) press(path, method, digits string, ms int) {
	o.T.Helper()
	var sent struct{ Method string }
	o.Want(200, "POST", path+"/dtmf", map[string]any{"digits": digits, "method": method, "duration_ms": ms}, &sent)
	if sent.Method != method {
		o.T.Errorf("digits asked for by %s were sent by %s", method, sent.Method)
	}
}

// both is how long two tones are heard at once.
func both(pcm []int16, hz [2]float64) (d time.Duration) {
	const part = 400 // 50 ms
	for i := 0; i+part <= len(pcm); i += part {
		if level(pcm[i:i+part], hz[0]) > -20 && level(pcm[i:i+part], hz[1]) > -20 {
			d += 50 * time.Millisecond
		}
	}
	return d
}
