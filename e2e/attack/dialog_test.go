package attack

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// dialog holds what an attacker who read the signalling knows of a dialog: the values of a party's requests.
type dialog struct{ uri, from, to, callID string }

// callerDialog returns the dialog of a caller from the trace of a call.
func callerDialog(x fixture.Trace, port int) (d dialog, ok bool) {
	m := x.Message(port, true, "SIP/2.0 200", "INVITE")
	return dialog{contactOf(m), rig.Field(m, "From"), rig.Field(m, "To"), rig.Field(m, "Call-ID")}, m != ""
}

// calleeDialog returns the dialog of a called party from the trace of a call.
func calleeDialog(x fixture.Trace, port int) (d dialog, ok bool) {
	m, invite := x.Message(port, false, "SIP/2.0 200", "INVITE"), x.Message(port, true, "INVITE ", "INVITE")
	return dialog{contactOf(invite), rig.Field(m, "To"), rig.Field(m, "From"), rig.Field(m, "Call-ID")}, m != "" && invite != ""
}

// contactOf returns the URI in the Contact of a message.
func contactOf(m string) string {
	_, uri, _ := strings.Cut(rig.Field(m, "Contact"), "<")
	uri, _, _ = strings.Cut(uri, ">")
	return uri
}

// dialogs waits until the trace of a call has both dialogs.
func dialogs(o *fixture.Org, path string, caller, callee int) (a, b dialog) {
	o.T.Helper()
	rig.Until(o.T, "both dialogs in the trace", 20*time.Second, func() bool {
		var x fixture.Trace
		o.Want(200, "GET", path+"/trace", nil, &x)
		var ok, also bool
		a, ok = callerDialog(x, caller)
		b, also = calleeDialog(x, callee)
		return ok && also
	})
	return a, b
}

// intruder sends SIP from an address of its own.
type intruder struct {
	t      *testing.T
	conn   net.Conn
	sent   int
	branch string // of the last request, by which its responses are found
}

func newIntruder(t *testing.T, s *rig.Server, from string) *intruder {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.UDPAddr{IP: net.ParseIP(from)}}
	conn, err := d.Dial("udp", s.SIP)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &intruder{t: t, conn: conn}
}

// write sends a request whose lines end in a line feed.
func (i *intruder) write(m string) {
	i.t.Helper()
	_, i.branch, _ = strings.Cut(rig.Field(m, "Via"), "branch=")
	i.branch, _, _ = strings.Cut(i.branch, ";")
	if _, err := i.conn.Write([]byte(strings.ReplaceAll(m, "\n", "\r\n"))); err != nil {
		i.t.Fatal(err)
	}
}

// status returns the status of the final response to a request.
func (i *intruder) status(method string) string {
	i.t.Helper()
	return strings.Fields(i.response(method))[1]
}

// response returns the final response to a request.
func (i *intruder) response(method string) string {
	i.t.Helper()
	b := make([]byte, 4000)
	for {
		_ = i.conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		n, err := i.conn.Read(b)
		if err != nil {
			i.t.Fatalf("no response to %s: %v", method, err)
		}
		m := strings.ReplaceAll(string(b[:n]), "\r", "")
		if f := strings.Fields(m); strings.HasSuffix(rig.Field(m, "CSeq"), " "+method) && f[1][0] != '1' &&
			strings.Contains(rig.Field(m, "Via")+";", "branch="+i.branch+";") {
			return m
		}
	}
}

// ask sends a request inside a dialog and returns the status of its response.
func (i *intruder) ask(method string, d dialog, extra, body string) string {
	i.t.Helper()
	i.sent++
	local := i.conn.LocalAddr().String()
	i.write(fmt.Sprintf("%s %s SIP/2.0\nVia: SIP/2.0/UDP %s;branch=z9hG4bKevil%s%d;rport\nMax-Forwards: 70\nFrom: %s\nTo: %s\nCall-ID: %s\n"+
		"CSeq: %d %[1]s\nContact: <sip:evil@%[3]s>\n%[10]sContent-Length: %[11]d\n\n", method, d.uri, local, strings.ReplaceAll(local, ":", ""), i.sent,
		d.from, d.to, d.callID, 50000+i.sent, extra, len(strings.ReplaceAll(body, "\n", "\r\n"))) + body)
	return i.status(method)
}

// takeover sends every request that would change or end a call. It returns the statuses that differ from want.
func (i *intruder) takeover(d dialog, want string) (wrong []string) {
	i.t.Helper()
	host, port, _ := net.SplitHostPort(i.conn.LocalAddr().String())
	sdp := fmt.Sprintf("v=0\no=evil 1 1 IN IP4 %s\ns=-\nc=IN IP4 %[1]s\nt=0 0\nm=audio %s RTP/AVP 0\n", host, port)
	for _, r := range []struct{ method, extra, body string }{
		{"INVITE", "Content-Type: application/sdp\n", sdp}, {"UPDATE", "Content-Type: application/sdp\n", sdp}, {"INFO", "", ""},
		{"REFER", "Refer-To: <sip:900@x>\n", ""}, {"NOTIFY", "Event: refer\nSubscription-State: active\n", ""}, {"MESSAGE", "", ""}, {"BYE", "", ""},
	} {
		if got := i.ask(r.method, d, r.extra, r.body); got != want {
			wrong = append(wrong, r.method+" "+got)
		}
	}
	return wrong
}

// TestDialog_CallIsNotTakenOver covers requests of an attacker with the Call-ID and tags of both dialogs of a call. Sent from
// another address, or another port of the phones' address, they neither end the call nor redirect its audio.
func TestDialog_CallIsNotTakenOver(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	o := &fixture.Office{Org: fixture.NewOrg(s)}
	o.Ada, o.Bob = o.AddUser("Ada"), o.AddUser("Bob")
	ada, bob := o.Phone(o.Ada, fixture.AdaTone, rig.PhoneOptions{}), o.Phone(o.Bob, fixture.BobTone, rig.PhoneOptions{Auto: true})
	ada.Dial(o.Bob.Extension)
	bob.Wait("CALL_ESTABLISHED", "")
	id := o.LiveCall(nil)["id"].(string)
	a, b := dialogs(o.Org, "/calls/"+id, ada.Port, bob.Port)
	for _, from := range []string{"127.66.6.7", "127.0.0.1"} {
		for who, d := range map[string]dialog{"Ada": a, "Bob": b} {
			if wrong := newIntruder(t, s, from).takeover(d, "407"); wrong != nil {
				t.Errorf("from %s in the name of %s: %v", from, who, wrong)
			}
		}
	}
	o.HearsOnly("Ada", ada, fixture.BobTone)
	o.HearsOnly("Bob", bob, fixture.AdaTone)
	bob.Do("hangup", "")
	ada.Wait("CALL_CLOSED", "")
	if r := o.CDR(o.Ada.Extension); r.String() != "internal completed agent_hangup agent 0" {
		t.Errorf("record: %s", r)
	}
}

// A carrier's call is refused to others, who have no password to prove anything with.
func TestDialog_TrunkCallIsNotTakenOver(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	o := fixture.NewOrg(s)
	bob := o.AddUser("Bob")
	phone := o.Phone(bob, fixture.BobTone, rig.PhoneOptions{Auto: true})
	carrier := o.AddCarrier(bob.ID, nil)
	call := s.Sipp(rig.Script{Scenario: "call", IP: carrier.IP, Port: carrier.Port, From: "+12025550199", Number: carrier.Number, Talk: 8 * time.Second})
	phone.Wait("CALL_ESTABLISHED", "")
	id := o.LiveCall(nil)["id"].(string)
	a, _ := dialogs(o, "/calls/"+id, carrier.Port, phone.Port)
	if wrong := newIntruder(t, s, "127.66.6.8").takeover(a, "403"); wrong != nil {
		t.Errorf("in the name of the carrier: %v", wrong)
	}
	call.Wait() // it fails unless its own BYE ends the call
	phone.Wait("CALL_CLOSED", "")
}

// A CANCEL cannot be challenged. It counts only from the address of its INVITE.
func TestDialog_CancelFromElsewhere(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	o := fixture.NewOrg(s)
	ada, bob := o.AddUser("Ada"), o.AddUser("Bob")
	caller, callee := o.Phone(ada, fixture.AdaTone, rig.PhoneOptions{}), o.Phone(bob, fixture.BobTone, rig.PhoneOptions{})
	caller.Do("dial", bob.Extension)
	callee.Wait("CALL_INCOMING", "")
	id := o.LiveCall(nil)["id"].(string)
	var invite string
	rig.Until(t, "the INVITE in the trace", 20*time.Second, func() bool {
		var x fixture.Trace
		o.Want(200, "GET", "/calls/"+id+"/trace", nil, &x)
		for _, m := range x.Messages {
			if !m.Sent && strings.HasPrefix(m.Text, "INVITE ") && strings.HasSuffix(m.Remote, ":"+strconv.Itoa(caller.Port)) {
				invite = strings.ReplaceAll(m.Text, "\r", "")
			}
		}
		return invite != ""
	})
	uri := strings.Fields(invite)[1]
	seq, _, _ := strings.Cut(rig.Field(invite, "CSeq"), " ")
	i := newIntruder(t, s, "127.66.6.9")
	i.write(fmt.Sprintf("CANCEL %s SIP/2.0\nVia: %s\nMax-Forwards: 70\nFrom: %s\nTo: %s\nCall-ID: %s\nCSeq: %s CANCEL\nContent-Length: 0\n\n", uri,
		rig.Field(invite, "Via"), rig.Field(invite, "From"), rig.Field(invite, "To"), rig.Field(invite, "Call-ID"), seq))
	if got := i.status("CANCEL"); got != "481" {
		t.Errorf("the CANCEL got %s", got)
	}
	callee.Do("accept", "")
	caller.Wait("CALL_ESTABLISHED", "")
	caller.Do("hangup", "")
	callee.Wait("CALL_CLOSED", "")
}
