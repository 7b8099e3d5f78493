package network

import (
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// Third-party telephones that trust only the authority of the server's certificate, and require encrypted audio, call
// each other.
func TestSecure_TLSAndSRTPBothWays(t *testing.T) {
	t.Parallel()
	own := rig.NewCertificate(t)
	o := &fixture.Office{Org: fixture.NewOrg(rig.Start(t, rig.Options{Env: fixture.NoSpeech, Flags: own.ListenFlags()}))}
	o.Ada, o.Bob, o.Carol = o.AddUser("Ada"), o.AddUser("Bob"), o.AddUser("Carol")
	for _, u := range []rig.User{o.Ada, o.Bob, o.Carol} {
		var phones struct{ Data []struct{ ID string } }
		o.Want(200, "GET", "/devices?user_id="+u.ID, nil, &phones)
		o.Want(200, "PATCH", "/devices/"+phones.Data[0].ID, map[string]any{"srtp": "required"}, nil)
	}
	say, _ := fixture.Tone(t, fixture.BobTone)
	bob := o.Server.Linphone(o.Bob.SIP, rig.LinphoneOptions{Say: say, Auto: true, Authority: own.Authority})
	say, _ = fixture.Tone(t, fixture.CarolTone)
	carol := o.Server.Linphone(o.Carol.SIP, rig.LinphoneOptions{Say: say, Auto: true, Authority: own.Authority})
	ada := o.Phone(o.Ada, fixture.AdaTone, rig.PhoneOptions{Transport: "tls", Authority: own.Authority, Encrypt: "srtp-mand"})

	bob.Dial(o.Carol.Extension)
	o.HearsOnly("Bob, a linphonec,", bob, fixture.CarolTone)
	o.HearsOnly("Carol, another one,", carol, fixture.BobTone)
	id := o.LiveCall(nil)["id"].(string)
	bob.Do("terminate")
	carol.Wait(`Call \d+ with .* ended`)
	wantEncrypted(o, id)

	ada.Dial(o.Bob.Extension)
	o.HearsOnly("Ada, a baresip,", ada, fixture.BobTone)
	o.HearsOnly("Bob, called by a baresip,", bob, fixture.AdaTone)
	id = o.LiveCall(nil)["id"].(string)
	ada.Do("hangup", "")
	bob.Wait(`Call \d+ with .* ended`)
	wantEncrypted(o, id)
}

// wantEncrypted fails unless both legs of a call were encrypted, by their quality figures and their signalling.
func wantEncrypted(o *fixture.Office, callID string) {
	o.T.Helper()
	o.Webhook.Wait("call.ended", time.Minute, func(e rig.Event) bool { return e.Data["call_id"] == callID })
	var report struct {
		Legs []struct{ Received *struct{ SRTP bool } }
	}
	o.Want(200, "GET", "/calls/"+callID+"/quality", nil, &report)
	if len(report.Legs) != 2 {
		o.T.Fatalf("quality: %+v", report)
	}
	for i, l := range report.Legs {
		if l.Received == nil || !l.Received.SRTP {
			o.T.Errorf("leg %d is not encrypted: %+v", i, l.Received)
		}
	}
	var trace struct{ Messages []struct{ Transport string } }
	o.Want(200, "GET", "/calls/"+callID+"/trace", nil, &trace)
	for _, m := range trace.Messages {
		if m.Transport != "tls" {
			o.T.Errorf("a message went by %q", m.Transport)
		}
	}
	if len(trace.Messages) < 8 {
		o.T.Errorf("%d messages in the trace", len(trace.Messages))
	}
}

// One telephone requires SRTP and refuses plain RTP; the other one supports only plain RTP.
func TestSecure_SRTPToPlainRTP(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	office := fixture.NewOrg(s)
	low, _ := fixture.Tone(t, 440)
	high, _ := fixture.Tone(t, 1000)
	for _, kind := range []string{"srtp-mand", "srtp", "dtls_srtp"} {
		t.Run(kind, func(t *testing.T) {
			o := office.In(t)
			ada, bob := o.AddUser("Ada-"+kind), o.AddUser("Bob-"+kind)
			caller := o.Server.Phone(ada.SIP, rig.PhoneOptions{Say: low, Encrypt: kind})
			callee := o.Server.Phone(bob.SIP, rig.PhoneOptions{Say: high, Auto: true})
			caller.Dial(bob.Extension)
			caller.Listen(3 * time.Second)
			callee.Listen(3 * time.Second)
			caller.Do("hangup", "")
			callee.Wait("CALL_CLOSED", "")
			both := o.RecordingAudio(o.Recording(o.CDR(ada.Extension).CallID).ID, "").PCM
			fixture.Hears(t, "the left channel", both[0], 440, 2*time.Second)
			fixture.Hears(t, "the right channel", both[1], 1000, 2*time.Second)
			fixture.Hears(t, "Ada", fixture.ReadWAV(t, caller.Close()).PCM[0], 1000, 2*time.Second)
			fixture.Hears(t, "Bob", fixture.ReadWAV(t, callee.Close()).PCM[0], 440, 2*time.Second)
		})
	}
}
