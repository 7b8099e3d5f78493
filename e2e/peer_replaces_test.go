package e2e

import (
	"strings"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// A phone that knows the dialog's tags takes the call over (RFC 3891).
func TestAPhoneTakesACallOver(t *testing.T) {
	t.Parallel()
	o := newOffice(rig.Start(t, rig.Options{Env: quiet}))
	path := o.call()
	var trace traced
	o.Want(200, "GET", path+"/trace", nil, &trace)
	bobs := trace.exchanged(o.bobPhone.Port, false, "SIP/2.0 200", "INVITE")
	tag := func(field string) string {
		_, after, _ := strings.Cut(rig.Field(bobs, field), "tag=")
		return strings.Split(after, ";")[0]
	}
	name := rig.Field(bobs, "Call-ID") + ";to-tag=" + tag("From") + ";from-tag=" + tag("To")
	if tag("To") == "" {
		t.Fatalf("no answer of Bob in the trace: %v", trace)
	}
	_, say := tone(t, carolTone)
	taker := o.Server.Sipp(rig.Script{Scenario: "call", Login: &o.carol.SIP, Number: o.bob.Extension, Play: say, Talk: 5 * time.Second,
		Headers: []string{"Replaces: " + name}})
	o.bobPhone.Wait("CALL_CLOSED", "")
	o.talks("Ada", o.adaPhone, carolTone)
	if c := o.live(nil); "/calls/"+c["id"].(string) != path || c["agent_id"] != o.carol.ID {
		t.Errorf("call that was taken over: %v", c)
	}
	taker.Wait()
	o.adaPhone.Wait("CALL_CLOSED", "")
	if r := o.record(o.ada.Extension); r.String() != "internal completed agent_hangup agent 0" {
		t.Errorf("record: %s", r)
	}
	refused := o.Server.Sipp(rig.Script{Scenario: "call_refused", Status: 481, Login: &o.carol.SIP, Number: o.bob.Extension,
		Headers: []string{"Replaces: nobody@knows;to-tag=a;from-tag=b"}})
	refused.Wait()
}
