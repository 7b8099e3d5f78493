package e2e

import (
	"testing"
	"time"

	"soniq/e2e/rig"
)

// Telephones by others that trust nobody but the authority of our certificate, and speak no audio that is not encrypted.
func TestTelephonesTalkOverTLSWithSRTP(t *testing.T) {
	t.Parallel()
	own := rig.NewCertificate(t)
	o := &office{site: newSite(rig.Start(t, rig.Options{Env: quiet, Flags: own.Doors()}))}
	o.ada, o.bob, o.carol = o.AddUser("Ada"), o.AddUser("Bob"), o.AddUser("Carol")
	for _, u := range []rig.User{o.ada, o.bob, o.carol} {
		var phones struct{ Data []struct{ ID string } }
		o.Want(200, "GET", "/devices?user_id="+u.ID, nil, &phones)
		o.Want(200, "PATCH", "/devices/"+phones.Data[0].ID, map[string]any{"srtp": "required"}, nil)
	}
	say, _ := tone(t, bobTone)
	bob := o.Server.Linphone(o.bob.SIP, rig.LinphoneOptions{Say: say, Auto: true, Authority: own.Authority})
	say, _ = tone(t, carolTone)
	carol := o.Server.Linphone(o.carol.SIP, rig.LinphoneOptions{Say: say, Auto: true, Authority: own.Authority})
	ada := o.phone(o.ada, adaTone, rig.PhoneOptions{Transport: "tls", Authority: own.Authority, Encrypt: "srtp-mand"})

	bob.Dial(o.carol.Extension)
	o.talks("Bob, a linphonec,", bob, carolTone)
	o.talks("Carol, another one,", carol, bobTone)
	id := o.live(nil)["id"].(string)
	bob.Do("terminate")
	carol.Wait(`Call \d+ with .* ended`)
	o.encrypted(id)

	ada.Dial(o.bob.Extension)
	o.talks("Ada, a baresip,", ada, bobTone)
	o.talks("Bob, called by a baresip,", bob, adaTone)
	id = o.live(nil)["id"].(string)
	ada.Do("hangup", "")
	bob.Wait(`Call \d+ with .* ended`)
	o.encrypted(id)
}

// encrypted fails unless both legs of a call were, as far as its figures and its signalling tell.
func (o *office) encrypted(callID string) {
	o.T.Helper()
	o.hooks.Wait("call.ended", time.Minute, func(e rig.Event) bool { return e.Data["call_id"] == callID })
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

// Telephones by others that have no address but one of IPv6, for signalling and audio.
func TestTelephonesTalkOverIPv6(t *testing.T) {
	t.Parallel()
	o := &office{site: newSite(rig.Start(t, rig.Options{Env: quiet, Flags: []string{"--sip", "[::1]:0"}}))}
	o.ada, o.bob, o.carol = o.AddUser("Ada"), o.AddUser("Bob"), o.AddUser("Carol")
	say, _ := tone(t, bobTone)
	bob := o.Server.Linphone(o.bob.SIP, rig.LinphoneOptions{Say: say, Auto: true})
	ada := o.phone(o.ada, adaTone, rig.PhoneOptions{})
	carol := o.phone(o.carol, carolTone, rig.PhoneOptions{Auto: true, Transport: "tcp"})

	ada.Dial(o.bob.Extension)
	o.talks("Ada", ada, bobTone)
	o.talks("Bob", bob, adaTone)
	ada.Do("hangup", "")
	bob.Wait(`Call \d+ with .* ended`)

	bob.Dial(o.carol.Extension)
	o.talks("Bob, who called,", bob, carolTone)
	o.talks("Carol, who was called,", carol, bobTone)
	bob.Do("terminate")
	carol.Wait("CALL_CLOSED", "")
	for _, r := range o.records(2, "") {
		if r.String() != "internal completed caller_hangup caller 0" {
			t.Errorf("record: %s", r)
		}
	}
}
