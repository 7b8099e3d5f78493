package call

import (
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
	"soniq/internal/protocol/media/wav"
)

// Phones without a common codec hear each other. Digits pass, and both are recorded.
func TestCodec_TranscodingBetweenPhones(t *testing.T) {
	t.Parallel()
	for name, codecs := range map[string][2]string{
		"Opus and A-law": {"opus/48000/2", "PCMA/8000"}, "G.722 and Opus": {"G722/16000", "opus/48000/2"}, "µ-law and G.722": {"PCMU/8000", "G722/16000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
			office := fixture.NewOrg(s)
			ada, bob := office.AddUser("Ada"), office.AddUser("Bob")
			low, _ := fixture.Tone(t, 440)
			high, _ := fixture.Tone(t, 1000)
			caller := s.Phone(ada.SIP, rig.PhoneOptions{Say: low, Codecs: codecs[0]})
			callee := s.Phone(bob.SIP, rig.PhoneOptions{Say: high, Codecs: codecs[1]})
			caller.Do("dial", bob.Extension)
			callee.Wait("CALL_INCOMING", "")
			callee.Do("accept", "")
			caller.Wait("CALL_ESTABLISHED", "")
			caller.Listen(time.Second * bytesFactor[codecs[0]])
			callee.Listen(time.Second * bytesFactor[codecs[1]])
			caller.Do("sndcode", "5")
			callee.Wait("CALL_DTMF_START", "5")
			callee.Listen(4 * time.Second * bytesFactor[codecs[1]]) // it counts at 8 kHz, one channel
			caller.Do("hangup", "")
			callee.Wait("CALL_CLOSED", "")
			both := office.RecordingAudio(office.Recording(office.CDR(ada.Extension).CallID).ID, "")
			wantTone(t, "Ada", fixture.ReadWAV(t, caller.Close()), 0, 1000)
			wantTone(t, "Bob", fixture.ReadWAV(t, callee.Close()), 0, 440)
			wantTone(t, "the left channel", both, 0, 440)
			wantTone(t, "the right channel", both, 1, 1000)
		})
	}
}

// bytesFactor is the size of a phone's recording with a codec, relative to that with G.711.
var bytesFactor = map[string]time.Duration{"PCMU/8000": 1, "PCMA/8000": 1, "G722/16000": 2, "opus/48000/2": 12}

// wantTone fails unless a channel, at any rate, holds a tone for two seconds.
func wantTone(t *testing.T, who string, w wav.Audio, channel int, hz float64) {
	t.Helper()
	pcm := fixture.Narrowband(wav.Audio{Rate: w.Rate, PCM: [][]int16{w.PCM[channel]}})
	if d := fixture.ToneDuration(pcm, hz); d < 2*time.Second {
		t.Errorf("%s, at %d Hz, heard %.0f Hz for %s", who, w.Rate, hz, d)
	}
}

func TestCodec_PCMAToPCMU(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	office := fixture.NewOrg(s)
	ada, bob := office.AddUser("Ada"), office.AddUser("Bob")
	low, _ := fixture.Tone(t, 440)
	high, _ := fixture.Tone(t, 1000)
	caller := s.Phone(ada.SIP, rig.PhoneOptions{Say: low})
	callee := s.Phone(bob.SIP, rig.PhoneOptions{Say: high, Auto: true, Codecs: "PCMA/8000"})
	caller.Dial(bob.Extension)
	caller.Listen(1500 * time.Millisecond)
	callee.Listen(1500 * time.Millisecond)
	caller.Do("hangup", "")
	callee.Wait("CALL_CLOSED", "")
	r := office.CDR(ada.Extension)
	both := office.RecordingAudio(office.Recording(r.CallID).ID, "").PCM
	fixture.Hears(t, "Ada", fixture.ReadWAV(t, caller.Close()).PCM[0], 1000, time.Second)
	fixture.Hears(t, "Bob", fixture.ReadWAV(t, callee.Close()).PCM[0], 440, time.Second)
	fixture.Hears(t, "the left channel", both[0], 440, time.Second)
	fixture.Hears(t, "the right channel", both[1], 1000, time.Second)
	fixture.Hears(t, "the agent's channel", office.RecordingAudio(office.Recording(r.CallID).ID, "?channel=agent").PCM[0], 1000, time.Second)
}

func TestCodec_UnsupportedRefused(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	company := fixture.NewOrg(s)
	user := company.AddUser("Ada")
	way := company.AddCarrier(user.ID, nil)
	const g729 = "18"
	port := company.RegisterSipp(user.SIP)
	s.Sipp(rig.Script{Scenario: "call_refused", Status: 488, IP: way.IP, From: "+12125550101", Number: way.Number, Formats: g729}).Wait()
	if r := company.CDR("+12125550101"); r.String() != "inbound missed carrier_error system 488" {
		t.Errorf("record of an offer that cannot be taken: %s", r)
	}
	callee := s.Sipp(rig.Script{Scenario: "answer", Port: port, From: user.SIP.Username, Formats: g729})
	s.Sipp(rig.Script{Scenario: "call_refused", Status: 488, IP: way.IP, From: "+12125550102", Number: way.Number}).Wait()
	callee.Wait()
	if r := company.CDR("+12125550102"); r.String() != "inbound missed carrier_error system 488" {
		t.Errorf("record of an answer that cannot be taken: %s", r)
	}
}

// TestCodec_OpusToG711WithLinphone connects a linphonec with Opus alone and a baresip with G.711 alone, in both directions.
func TestCodec_OpusToG711WithLinphone(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	o := &fixture.Office{Org: fixture.NewOrg(s)}
	o.Ada, o.Bob = o.AddUser("Ada"), o.AddUser("Bob")
	o.AdaPhone = o.Phone(o.Ada, fixture.AdaTone, rig.PhoneOptions{Auto: true, Codecs: "PCMU/8000"})
	say, _ := fixture.Tone(t, fixture.BobTone)
	bob := s.Linphone(o.Bob.SIP, rig.LinphoneOptions{Say: say, Auto: true, Wide: true})

	bob.Dial(o.Ada.Extension)
	o.HearsOnly("Ada, who was called,", o.AdaPhone, fixture.BobTone)
	o.HearsOnly("Bob, who called,", bob, fixture.AdaTone)
	wantCodecs(o, map[string]string{o.Ada.ID: "PCMU", o.Bob.ID: "OPUS"})
	bob.Do("terminate")
	o.AdaPhone.Wait("CALL_CLOSED", "")

	o.AdaPhone.Dial(o.Bob.Extension)
	o.HearsOnly("Ada, who called,", o.AdaPhone, fixture.BobTone)
	o.HearsOnly("Bob, who was called,", bob, fixture.AdaTone)
	wantCodecs(o, map[string]string{o.Ada.ID: "PCMU", o.Bob.ID: "OPUS"})
	o.AdaPhone.Do("hangup", "")
	bob.Wait(`Call \d+ with .* ended`)
}

// wantCodecs fails unless the legs of the call in progress have these codecs, by user.
func wantCodecs(o *fixture.Office, codecs map[string]string) {
	o.T.Helper()
	var c struct {
		Legs []struct {
			User  string `json:"user_id"`
			Codec string
		}
	}
	id := o.LiveCall(func(c map[string]any) bool { return c["status"] == "in_progress" })["id"].(string)
	o.Want(200, "GET", "/calls/"+id+"?expand=legs", nil, &c)
	for _, l := range c.Legs {
		if l.Codec != codecs[l.User] {
			o.T.Errorf("the leg of %s has the codec %q; want %q", l.User, l.Codec, codecs[l.User])
		}
	}
	if len(c.Legs) != len(codecs) {
		o.T.Errorf("legs: %+v", c.Legs)
	}
}
