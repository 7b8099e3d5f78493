package browser

import (
	"slices"
	"strings"
	"testing"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// A page learns the id of its call from the INVITE, or from the responses to its own: X-Soniq-Call. Desk phones do not get the header. The
// live event call.ringing names the SIP dialog.
func TestBrowser_LearnsCallID(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Load: rig.Browser, Flags: []string{"--web-origins", "*"}})
	office := fixture.NewOrg(s)
	ada, bob, carol := office.AddUser("Ada"), office.AddUser("Bob"), office.AddUser("Carol")
	a := newWebPhone(t, s, ada.SIP, "440", false)
	b := newWebPhone(t, s, bob.SIP, "1000", true)
	rings := office.OpenStream("", "call.ringing")
	a.dial(bob.Extension)
	a.wait("confirmed")
	b.wait("confirmed")
	id := liveCall(office)
	if got := b.callsNamed(); !slices.Equal(got, []string{"call of INVITE " + id}) {
		t.Errorf("the called page learnt %q, want %s", got, id)
	}
	if got := a.callsNamed(); !slices.Equal(got, []string{"call of progress " + id, "call of accepted " + id}) {
		t.Errorf("the calling page learnt %q, want %s", got, id)
	}
	var dialog string
	b.eval(&dialog, "session._request.call_id")
	told := fixture.NextEventData[struct {
		CallID    string `json:"call_id"`
		SIPCallID string `json:"sip_call_id"`
	}](rings)
	if told.CallID != id || told.SIPCallID != dialog {
		t.Errorf("call.ringing %+v, want the dialog %s of %s", told, dialog, id)
	}
	a.eval(nil, "session.terminate()")
	b.wait("ended")

	desk := s.Phone(carol.SIP, rig.PhoneOptions{Say: voice(t, "1000", "8000"), Auto: true})
	a.eval(nil, "(events.length = 0, 0)")
	a.dial(carol.Extension)
	a.wait("confirmed")
	desk.Wait("CALL_ESTABLISHED", "")
	id = liveCall(office)
	a.eval(nil, "session.terminate()")
	desk.Wait("CALL_CLOSED", "")
	var trace struct {
		Messages []struct {
			Text, Transport string
			Sent            bool
		}
	}
	office.Want(200, "GET", "/calls/"+id+"/trace", nil, &trace)
	toDesk := 0
	for _, m := range trace.Messages {
		if m.Transport == "ws" || m.Transport == "wss" || !strings.HasPrefix(m.Text, "INVITE") {
			continue
		}
		toDesk++
		if strings.Contains(m.Text, "X-Soniq-Call") {
			t.Errorf("the desk phone got\n%s", m.Text)
		}
	}
	if toDesk == 0 {
		t.Errorf("no INVITE to the desk phone among %d messages", len(trace.Messages))
	}
}

// callsNamed returns the ids of calls that the page has learnt, each with the message it came from, once.
func (p *webPhone) callsNamed() (all []string) {
	for _, e := range p.events() {
		if strings.HasPrefix(e, "call of ") && !slices.Contains(all, e) {
			all = append(all, e)
		}
	}
	return all
}

// liveCall returns the id of the one call in progress.
func liveCall(office *fixture.Org) string {
	office.T.Helper()
	var live struct{ Data []struct{ ID string } }
	office.Want(200, "GET", "/calls/live", nil, &live)
	if len(live.Data) != 1 {
		office.T.Fatalf("calls in progress: %+v", live)
	}
	return live.Data[0].ID
}
