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
	var trace fixture.Trace
	o.Want(200, "GET", path+"/trace", nil, &trace)
	bobs := trace.Message(o.BobPhone.Port, false, "SIP/2.0 200", "INVITE")
	tag := func(field string) string {
		_, after, _ := strings.Cut(rig.Field(bobs, field), "tag=")
		return strings.Split(after, ";")[0]
	}
	name := rig.Field(bobs, "Call-ID") + ";to-tag=" + tag("From") + ";from-tag=" + tag("To")
	if tag("To") == "" {
		t.Fatalf("no answer of Bob in the trace: %v", trace)
	}
	_, say := fixture.Tone(t, fixture.CarolTone)
	taker := o.Server.Sipp(rig.Script{Scenario: "call", Login: &o.Carol.SIP, Number: o.Bob.Extension, Play: say, Talk: 5 * time.Second,
		Headers: []string{"Replaces: " + name}})
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
