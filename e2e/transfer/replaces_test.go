package transfer

import (
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// A phone that knows the dialog's tags takes over the call (Replaces, RFC 3891).
func TestReplaces_TakesOverCall(t *testing.T) {
	t.Parallel()
	o := fixture.NewOffice(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))
	path := o.ConnectCall()
	_, say := fixture.Tone(t, fixture.CarolTone)
	taker := o.Server.Sipp(rig.Script{Scenario: "call", Login: &o.Carol.SIP, Number: o.Bob.Extension, Play: say, Talk: 5 * time.Second,
		Headers: []string{"Replaces: " + dialogOf(o, path, o.BobPhone, false)}})
	o.BobPhone.Wait("CALL_CLOSED", "")
	o.HearsOnly("Ada", o.AdaPhone, fixture.CarolTone)
	if c := o.LiveCall(nil); "/calls/"+c["id"].(string) != path || c["agent_id"] != o.Carol.ID {
		t.Errorf("call that was taken over: %v", c)
	}
	taker.Wait()
	o.AdaPhone.Wait("CALL_CLOSED", "")
	if r := o.CDR(o.Ada.Extension); r.String() != "internal completed agent_hangup agent 0" {
		t.Errorf("record: %s", r)
	}
	refused := o.Server.Sipp(rig.Script{Scenario: "call_refused", Status: 481, Login: &o.Carol.SIP, Number: o.Bob.Extension,
		Headers: []string{"Replaces: nobody@knows;to-tag=a;from-tag=b"}})
	refused.Wait()
}

// dialogOf returns the value of Replaces for the dialog that a phone has in a call. placed reports that the phone sent the
// INVITE. The tags of Replaces are those of the server's side: its own is to-tag.
func dialogOf(o *fixture.Office, path string, phone *rig.Phone, placed bool) string {
	t := o.Server.T
	t.Helper()
	var trace fixture.Trace
	o.Want(200, "GET", path+"/trace", nil, &trace)
	m := trace.Message(phone.Port, placed, "SIP/2.0 200", "INVITE")
	tag := func(field string) string {
		_, after, _ := strings.Cut(rig.Field(m, field), "tag=")
		return strings.Split(after, ";")[0]
	}
	own, peer := tag("From"), tag("To")
	if placed {
		own, peer = peer, own
	}
	if own == "" || peer == "" {
		t.Fatalf("no answered INVITE of the phone in the trace: %v", trace)
	}
	return rig.Field(m, "Call-ID") + ";to-tag=" + own + ";from-tag=" + peer
}
