package call

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// A digit in INFO reaches the peer in its audio: as an RFC 4733 event if that was negotiated, otherwise as tones. The
// telephone without events echoes the audio it receives, so the recording shows what it received.
func TestDTMF_INFOToRFC4733AndTones(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	ada, bob := company.AddUser("Ada"), company.AddUser("Bob")
	toAda, toBob := company.AddCarrier(ada.ID, nil), company.AddCarrier(bob.ID, nil)
	say, _ := fixture.Tone(t, 440)
	phone := s.Phone(ada.SIP, rig.PhoneOptions{Say: say, Auto: true})
	info := func(way fixture.Carrier, from string) fixture.CDR {
		t.Helper()
		s.Sipp(rig.Script{Scenario: "call_info", Status: 200, IP: way.IP, From: from, Number: way.Number, Talk: 2 * time.Second}).Wait()
		r := company.CDR(from)
		if r.String() != "inbound completed caller_hangup caller 0" {
			t.Errorf("record: %s", r)
		}
		var trace fixture.Trace
		rig.Until(t, "the trace of the call", 10*time.Second, func() bool {
			company.Want(200, "GET", "/calls/"+r.CallID+"/trace", nil, &trace)
			return strings.Contains(trace.Outline(), "BYE sip:")
		})
		if got := strings.Count(trace.Outline(), "INFO sip:"); got != 1 {
			t.Errorf("the INFO went on to the telephone: %s", trace.Outline())
		}
		return r
	}
	info(toAda, "+12125550101")
	phone.Wait("CALL_DTMF_START", "5")
	echo := s.Sipp(rig.Script{Scenario: "answer", NoEvents: true, Echo: true, Port: company.RegisterSipp(bob.SIP), From: bob.SIP.Username})
	r := info(toBob, "+12125550102")
	echo.Wait()
	if d := dualToneDuration(company.RecordingAudio(company.Recording(r.CallID).ID, "").PCM[1],
		[2]float64{770, 1336}); d < 300*time.Millisecond || d > 500*time.Millisecond {
		t.Errorf("the tones of a 5 of 400 ms were heard for %s", d)
	}
}

func TestDTMF_ByRequest(t *testing.T) {
	t.Parallel()
	o := fixture.NewOffice(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))
	path := o.ConnectCall()
	var sent struct {
		Digits int `json:"digits_sent"`
		Method string
	}
	o.Want(200, "POST", path+"/dtmf", map[string]any{"digits": "1w5#"}, &sent)
	if sent.Digits != 3 || sent.Method != "rfc4733" {
		t.Errorf("digits: %+v", sent)
	}
	for _, d := range []string{"1", "5", "#"} {
		o.AdaPhone.Wait("CALL_DTMF_START", d)
	}
	o.Want(200, "POST", path+"/dtmf", map[string]any{"digits": "9", "method": "inband"}, nil)
	o.Want(200, "POST", path+"/dtmf", map[string]any{"digits": "9", "method": "info"}, nil)
}

func TestDTMF_RFC4733INFOAndInband(t *testing.T) {
	t.Parallel()
	for _, codec := range []string{"PCMU/8000", "G722/16000"} {
		t.Run(codec, func(t *testing.T) {
			t.Parallel()
			o := &fixture.Office{Org: fixture.NewOrg(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))}
			o.Ada, o.Bob = o.AddUser("Ada"), o.AddUser("Bob")
			o.AdaPhone = o.Phone(o.Ada, fixture.AdaTone, rig.PhoneOptions{Codecs: codec})
			o.BobPhone = o.Phone(o.Bob, fixture.BobTone, rig.PhoneOptions{Auto: true, Codecs: codec})
			o.AdaPhone.Dial(o.Bob.Extension)
			o.BobPhone.Wait("CALL_ESTABLISHED", "")
			path := "/calls/" + o.LiveCall(nil)["id"].(string)
			o.AdaPhone.Listen(time.Second)
			sendDigits(o, path, "rfc4733", "1*", 160)
			o.AdaPhone.Wait("CALL_DTMF_START", "1")
			o.AdaPhone.Wait("CALL_DTMF_START", "*")
			sendDigits(o, path, "info", "7#", 160)
			o.AdaPhone.Wait("CALL_DTMF_START", "7")
			o.AdaPhone.Wait("CALL_DTMF_START", "#")
			o.AdaPhone.Listen(time.Duration(bytesFactor[codec]) * 3 * time.Second)
			sendDigits(o, path, "inband", "2w9", 400)
			o.AdaPhone.Listen(time.Duration(bytesFactor[codec]) * 7 * time.Second)
			heard := fixture.Narrowband(fixture.ReadWAV(t, o.AdaPhone.Close()))
			for key, hz := range map[string][2]float64{"2": {697, 1336}, "9": {852, 1477}} {
				if d := dualToneDuration(heard, hz); d < 250*time.Millisecond || d > 600*time.Millisecond {
					t.Errorf("the tones of %s were heard for %s", key, d)
				}
			}
			for key, hz := range map[string][2]float64{"1": {697, 1209}, "7": {852, 1209}, "*": {941, 1209}} {
				if d := dualToneDuration(heard, hz); d > 0 {
					t.Errorf("the tones of %s, which was sent another way, were heard for %s", key, d)
				}
			}
		})
	}
}

// TestDTMF_ByRequestToLinphone sends digits to a linphonec, which prints the ones it received.
func TestDTMF_ByRequestToLinphone(t *testing.T) {
	t.Parallel()
	o, bob := fixture.NewOfficeWithLinphone(t)
	bob.Dial(o.Ada.Extension)
	path := "/calls/" + o.LiveCall(nil)["id"].(string)
	for method, digit := range map[string]string{"rfc4733": "4", "info": "8"} {
		sendDigits(o, path, method, digit, 160)
		bob.Wait(fmt.Sprintf(`Receiving tone %s from`, digit))
	}
}

// A telephone that sends digits as events is connected to one that negotiated none, which receives tones. That
// telephone echoes them.
func TestDTMF_RFC4733ToTones(t *testing.T) {
	t.Parallel()
	for _, codec := range []string{"PCMU/8000", "PCMA/8000"} { // the other takes PCMU only
		t.Run(codec, func(t *testing.T) {
			t.Parallel()
			o := &fixture.Office{Org: fixture.NewOrg(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))}
			o.Ada, o.Bob = o.AddUser("Ada"), o.AddUser("Bob")
			o.AdaPhone = o.Phone(o.Ada, fixture.AdaTone, rig.PhoneOptions{Codecs: codec})
			echo := o.Server.Sipp(rig.Script{Scenario: "answer", NoEvents: true, Echo: true, Port: o.RegisterSipp(o.Bob.SIP),
				From: o.Bob.SIP.Username})
			o.AdaPhone.Dial(o.Bob.Extension)
			fixture.Hears(t, "Ada, herself,", o.AdaPhone.Since(o.AdaPhone.Mark(), 2*time.Second), fixture.AdaTone, time.Second)
			from := o.AdaPhone.Mark()
			for _, key := range []string{"1", "5", "#"} {
				o.AdaPhone.Do("sndcode", key)
			}
			heard := o.AdaPhone.Since(from, 4*time.Second)
			for key, hz := range map[string][2]float64{"1": {697, 1209}, "5": {770, 1336}, "#": {941, 1477}} {
				if d := dualToneDuration(heard, hz); d < 50*time.Millisecond || d > 400*time.Millisecond { // the first is held longest
					t.Errorf("the tones of %s were heard for %s", key, d)
				}
			}
			fixture.Hears(t, "Ada, herself, afterwards", o.AdaPhone.Since(o.AdaPhone.Mark(), 2*time.Second), fixture.AdaTone, time.Second)
			o.AdaPhone.Do("hangup", "")
			echo.Wait()
		})
	}
}

// TestDTMF_SupervisedCall sends digits in a mixed call. Each digit goes to the parties that hear its sender: a supervisor receives the
// digits of both sides, and the digits of a supervisor go to the side that hears the supervisor.
func TestDTMF_SupervisedCall(t *testing.T) {
	t.Parallel()
	o := fixture.NewOffice(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))
	_, monitor := o.SuperviseCall()
	o.AdaPhone.Do("sndcode", "5")
	wantNextKey(o.BobPhone, "5")
	wantNextKey(o.CarolPhone, "5")
	o.CarolPhone.Do("sndcode", "1") // in silent mode no party receives it
	o.BobPhone.Do("sndcode", "9")
	wantNextKey(o.AdaPhone, "9")
	wantNextKey(o.CarolPhone, "9")
	o.Want(200, "PATCH", monitor, map[string]any{"mode": "whisper"}, nil)
	o.HearsOnly("Bob, whispered to,", o.BobPhone, fixture.AdaTone, fixture.CarolTone)
	o.CarolPhone.Do("sndcode", "2")
	wantNextKey(o.BobPhone, "2")
	o.Want(200, "PATCH", monitor, map[string]any{"mode": "barge"}, nil)
	o.HearsOnly("Ada", o.AdaPhone, fixture.BobTone, fixture.CarolTone)
	o.CarolPhone.Do("sndcode", "3")
	wantNextKey(o.AdaPhone, "3")
	wantNextKey(o.BobPhone, "3")
	o.HearsOnly("Ada, afterwards,", o.AdaPhone, fixture.BobTone, fixture.CarolTone)
}

// Digits in INFO reach all other parties of a conference.
func TestDTMF_INFOInConference(t *testing.T) {
	t.Parallel()
	o := fixture.NewOffice(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))
	dora := o.AddHandset("Dora", nil)
	call := dora.Dial(o.Bob.Extension)
	o.BobPhone.Wait("CALL_ESTABLISHED", "")
	path := "/calls/" + o.LiveCall(nil)["id"].(string)
	o.Want(201, "POST", path+"/participants", map[string]any{"to": o.Carol.Extension}, nil)
	o.CarolPhone.Wait("CALL_ESTABLISHED", "")
	o.HearsOnly("Carol, added,", o.CarolPhone, fixture.BobTone)
	call.WaitAnswered().Press("8#")
	wantNextKey(o.CarolPhone, "8")
	wantNextKey(o.CarolPhone, "#")
	call.HangUp()
}

// A telephone without events receives the digits of a conference as tones. It echoes the audio, so the recording
// shows what it received.
func TestDTMF_TonesInConference(t *testing.T) {
	t.Parallel()
	o := fixture.NewOffice(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))
	dave := o.AddUser("Dave")
	echo := o.Server.Sipp(rig.Script{Scenario: "answer", NoEvents: true, Echo: true, Port: o.RegisterSipp(dave.SIP),
		From: dave.SIP.Username})
	o.AdaPhone.Dial(dave.Extension)
	id := o.LiveCall(nil)["id"].(string)
	o.Want(201, "POST", "/calls/"+id+"/participants", map[string]any{"to": o.Carol.Extension}, nil)
	o.CarolPhone.Wait("CALL_ESTABLISHED", "")
	o.HearsOnly("Carol, whose voice comes back,", o.CarolPhone, fixture.AdaTone, fixture.CarolTone)
	o.CarolPhone.Do("sndcode", "5")
	wantNextKey(o.AdaPhone, "5")
	o.HearsOnly("Carol, afterwards,", o.CarolPhone, fixture.AdaTone, fixture.CarolTone)
	o.AdaPhone.Do("hangup", "")
	o.CarolPhone.Do("hangup", "")
	echo.Wait()
	r := o.CDR(o.Ada.Extension)
	if d := dualToneDuration(o.RecordingAudio(o.Recording(r.CallID).ID, "").PCM[1], [2]float64{770, 1336}); d < 50*time.Millisecond ||
		d > 400*time.Millisecond {
		t.Errorf("the tones of a 5 were heard for %s", d)
	}
}

// wantNextKey fails unless the next digit that a telephone receives is this one.
func wantNextKey(p *rig.Phone, want string) {
	p.T.Helper()
	if got := p.Wait("CALL_DTMF_START", "").Param; got != want {
		p.T.Errorf("the next key is %q, want %q", got, want)
	}
}

// sendDigits sends digits to the caller by request.
func sendDigits(o *fixture.Office, path, method, digits string, ms int) {
	o.T.Helper()
	var sent struct{ Method string }
	o.Want(200, "POST", path+"/dtmf", map[string]any{"digits": digits, "method": method, "duration_ms": ms}, &sent)
	if sent.Method != method {
		o.T.Errorf("digits asked for by %s were sent by %s", method, sent.Method)
	}
}

// dualToneDuration returns how long two tones are heard at once.
func dualToneDuration(pcm []int16, hz [2]float64) (d time.Duration) {
	const part = 400 // 50 ms
	for i := 0; i+part <= len(pcm); i += part {
		if fixture.ToneLevel(pcm[i:i+part], hz[0]) > -20 && fixture.ToneLevel(pcm[i:i+part], hz[1]) > -20 {
			d += 50 * time.Millisecond
		}
	}
	return d
}
