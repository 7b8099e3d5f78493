package call

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

func TestTimeline_StreamedAndKept(t *testing.T) {
	t.Parallel()
	o := &fixture.Office{Org: fixture.NewOrg(rig.Start(t, rig.Options{Env: fixture.NoSpeech}))}
	o.Ada, o.Bob, o.Carol = o.AddUser("Ada"), o.AddUser("Bob"), o.AddUser("Carol")
	o.AdaPhone = o.Phone(o.Ada, fixture.AdaTone, rig.PhoneOptions{Encrypt: "srtp-mand"})
	o.BobPhone = o.Phone(o.Bob, fixture.BobTone, rig.PhoneOptions{Auto: true})
	o.CarolPhone = o.Phone(o.Carol, fixture.CarolTone, rig.PhoneOptions{Auto: true})
	path := ""
	told := o.ReadStream("", func() {
		path = o.ConnectCall()
		o.Want(200, "POST", path+"/hold", map[string]any{}, nil)
		o.Want(200, "POST", path+"/unhold", map[string]any{}, nil)
		o.Want(200, "POST", path+"/transfer", map[string]any{"to": o.Carol.Extension}, nil)
		o.CarolPhone.Wait("CALL_ESTABLISHED", "")
		o.BobPhone.Wait("CALL_CLOSED", "")
		o.AdaPhone.Do("hangup", "")
	}, func(e fixture.StreamEvent) bool { return e.Type == "call.ended" })
	held, done := fixture.FirstEvent(told, "call.held", ""), fixture.FirstEvent(told, "call.transfer", `"status":"completed"`)
	if held < 0 || done < held || fixture.FirstEvent(told, "call.started", "") < 0 {
		t.Fatalf("the live stream told %v", told)
	}
	again := o.ReadStream(told[held].ID, func() {}, func(e fixture.StreamEvent) bool { return e.Type == "call.ended" })
	if fixture.FirstEvent(again, "call.held", "") >= 0 || fixture.FirstEvent(again, "call.transfer", `"status":"completed"`) < 0 ||
		len(stored(again)) != len(stored(told[held+1:])) {
		t.Errorf("resumed after the hold, the stream told %v; the first time it was %v", again, told)
	}
	o.CDR(o.Ada.Extension)
	wantSteps(o, path, "call.held", "transfer.started", "transfer.completed", "event.call.ended")
	wantTrace(o, path)
	o.Server.Stop()
	o.Server.Start()
	wantSteps(o, path, "event.call.started", "webhook.call.started", "call.held", "event.call.ended", "webhook.call.ended")
	wantTrace(o, path)
}

// stored returns the events that have an id. Others, such as call.quality, are sent once.
func stored(all []fixture.StreamEvent) (some []fixture.StreamEvent) {
	for _, e := range all {
		if e.ID != "" {
			some = append(some, e)
		}
	}
	return some
}

// wantSteps fails unless these kinds are in the timeline of a call, in this order.
func wantSteps(o *fixture.Office, path string, want ...string) {
	o.T.Helper()
	kinds, next := o.TimelineSteps(path), 0
	for _, kind := range kinds {
		if next < len(want) && kind == want[next] {
			next++
		}
	}
	if next < len(want) {
		o.T.Errorf("there is no %s in its place of the timeline: %v", want[next], kinds)
	}
}

// wantTrace checks the trace of a call: all three telephones from INVITE to the answer to the last BYE, and no secret.
func wantTrace(o *fixture.Office, path string) {
	o.T.Helper()
	var trace fixture.Trace
	missing := func() string {
		o.Want(200, "GET", path+"/trace", nil, &trace)
		for _, p := range []struct {
			phone *rig.Phone
			ours  bool // we call, and hang up
		}{{o.AdaPhone, false}, {o.BobPhone, true}, {o.CarolPhone, true}} {
			if trace.Message(p.phone.Port, p.ours, "INVITE ", "INVITE") == "" || trace.Message(p.phone.Port, p.ours, "BYE ", "BYE") == "" ||
				trace.Message(p.phone.Port, !p.ours, "SIP/2.0 200", "BYE") == "" {
				return fmt.Sprintf("the trace lacks INVITE, BYE or its answer of the telephone at port %d: %s", p.phone.Port, trace.Outline())
			}
		}
		return ""
	}
	lacks := missing()
	if lacks != "" { // the last answer is a moment later than the record
		rig.Until(o.T, lacks, 5*time.Second, func() bool { return missing() == "" })
	}
	credentials, keys := 0, 0
	for _, m := range trace.Messages {
		for line := range strings.SplitSeq(m.Text, "\n") {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(strings.ToLower(line), "proxy-authorization:") || strings.HasPrefix(strings.ToLower(line), "authorization:") {
				credentials++
				if _, response, _ := strings.Cut(line, `response="`); hexPrefix(strings.Split(response, `"`)[0]) >= 32 {
					o.T.Errorf("the trace shows a response: %s", line)
				}
			}
			if _, key, ok := strings.Cut(line, "inline:"); ok {
				keys++
				if len(strings.Split(key, "|")[0]) >= 40 {
					o.T.Errorf("the trace shows a key: %s", line)
				}
			}
		}
	}
	if credentials == 0 || keys == 0 {
		o.T.Errorf("the trace has %d lines with credentials and %d with keys, so that nothing is proven", credentials, keys)
	}
}

// hexPrefix returns how many hexadecimal digits a text begins with.
func hexPrefix(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789abcdef")) }
