package attack

import (
	"crypto/md5"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// credentialsFor answers a challenge for one request, as a telephone does.
func credentialsFor(l rig.Login, challenge, method, uri, nc string) string {
	p := fixture.DigestParameters(challenge)
	hash := func(parts ...string) string { return fmt.Sprintf("%x", md5.Sum([]byte(strings.Join(parts, ":")))) }
	response := hash(hash(l.Username, p["realm"], l.Password), p["nonce"], nc, "evil", "auth", hash(method, uri))
	return fmt.Sprintf("Digest username=%q, realm=%q, nonce=%q, uri=%q, response=%q, algorithm=MD5, cnonce=\"evil\", qop=auth, nc=%s",
		l.Username, p["realm"], p["nonce"], uri, response, nc)
}

// request sends a request outside dialogs in the name of a user, and returns the final response.
func (i *intruder) request(method, uri, user, authorization string) string {
	i.t.Helper()
	i.open(method, uri, user, authorization)
	return i.response(method)
}

// open sends a request outside dialogs, and returns the lines that its CANCEL repeats.
func (i *intruder) open(method, uri, user, authorization string) string {
	i.t.Helper()
	i.sent++
	local := i.conn.LocalAddr().String()
	name, extra := strings.NewReplacer(".", "", ":", "").Replace(local)+strconv.Itoa(i.sent), ""
	if authorization != "" {
		extra = "Authorization: " + authorization + "\nProxy-Authorization: " + authorization + "\n"
	}
	head := fmt.Sprintf("Via: SIP/2.0/UDP %s;branch=z9hG4bKr%s;rport\nMax-Forwards: 70\nFrom: <sip:%s@x>;tag=e%[2]s\nTo: <%[4]s>\nCall-ID: r%[2]s\n", local,
		name, user, uri)
	i.write(fmt.Sprintf("%s %s SIP/2.0\n%sCSeq: 1 %[1]s\nContact: <sip:evil@%[4]s>\n%[5]sContent-Length: 0\n\n", method, uri, head, local, extra))
	return head
}

// Credentials that were captured before they arrived are good for that one request alone: not for another number,
// method or count, and not twice.
func TestRelay_CapturedCredentials(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	o := fixture.NewOrg(s)
	ada, bob, carol := o.AddUser("Ada"), o.AddUser("Bob"), o.AddUser("Carol")
	phone := o.Phone(bob, fixture.BobTone, rig.PhoneOptions{})
	i := newIntruder(t, s, "127.66.6.10")
	number := func(u rig.User) string { return "sip:" + u.Extension + "@" + ada.SIP.Domain }
	challenge := rig.Field(i.request("INVITE", number(bob), ada.SIP.Username, ""), "Proxy-Authenticate")
	captured := credentialsFor(ada.SIP, challenge, "INVITE", number(bob), "00000001")
	recounted := strings.Replace(captured, "nc=00000001", "nc=00000002", 1)
	renamed := strings.Replace(captured, fmt.Sprintf("uri=%q", number(bob)), fmt.Sprintf("uri=%q", number(carol)), 1)
	for _, c := range []struct{ what, method, uri, credentials, want string }{
		{"another number", "INVITE", number(carol), captured, "400"},
		{"another number in the credentials too", "INVITE", number(carol), renamed, "407"},
		{"another method", "MESSAGE", number(bob), captured, "407"},
		{"another method, of a registration", "REGISTER", "sip:" + ada.SIP.Domain, captured, "400"},
		{"another count", "INVITE", number(bob), recounted, "407"},
	} {
		if got := strings.Fields(i.request(c.method, c.uri, ada.SIP.Username, c.credentials))[1]; got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
	head := i.open("INVITE", number(bob), ada.SIP.Username, captured) // what they are good for
	phone.Wait("CALL_INCOMING", "")
	i.write(fmt.Sprintf("CANCEL %s SIP/2.0\n%sCSeq: 1 CANCEL\nContent-Length: 0\n\n", number(bob), head))
	if got := i.status("CANCEL"); got != "200" {
		t.Errorf("CANCEL: %s", got)
	}
	again := newIntruder(t, s, "127.66.6.10")
	if m := again.request("INVITE", number(bob), ada.SIP.Username, captured); !strings.HasPrefix(m, "SIP/2.0 407") || !strings.Contains(m, "stale=true") {
		t.Errorf("used twice: %s", m)
	}
}

// TestRelay_ChallengePassedToAPhone covers a digest relay. The attacker calls a phone directly and answers the phone's BYE with
// a challenge of the server. The phone's credentials are for that BYE; the server refuses them in an INVITE or MESSAGE.
func TestRelay_ChallengePassedToAPhone(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	o := fixture.NewOrg(s)
	bob, carol := o.AddUser("Bob"), o.AddUser("Carol")
	phone := o.Phone(bob, fixture.BobTone, rig.PhoneOptions{Auto: true})
	i := newIntruder(t, s, "127.66.6.11")
	target := "sip:" + carol.Extension + "@" + bob.SIP.Domain
	challenge := rig.Field(i.request("INVITE", target, bob.SIP.Username, ""), "Proxy-Authenticate")
	answer := byeCredentials(t, phone, bob.SIP, target, challenge)
	if answer == "" {
		t.Fatal("the phone did not answer the challenge, so nothing was relayed")
	}
	if p := fixture.DigestParameters(answer); p["uri"] != target {
		t.Fatalf("the telephone answered %s", answer)
	}
	for _, method := range []string{"INVITE", "MESSAGE"} {
		if got := strings.Fields(i.request(method, target, bob.SIP.Username, answer))[1]; got != "407" {
			t.Errorf("%s with credentials of a BYE: %s", method, got)
		}
	}
}

// byeCredentials calls a telephone directly, lets it hang up, challenges its BYE and returns its answer.
func byeCredentials(t *testing.T, phone *rig.Phone, l rig.Login, target, challenge string) string {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.UDPAddr{IP: net.IPv4(127, 66, 6, 11)}}
	conn, err := d.Dial("udp", net.JoinHostPort("127.0.0.1", strconv.Itoa(phone.Port)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	local := conn.LocalAddr().String()
	send := func(m string) { _, _ = conn.Write([]byte(strings.ReplaceAll(m, "\n", "\r\n"))) }
	last := ""
	read := func(start string) string {
		for b := make([]byte, 4000); ; {
			_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
			n, err := conn.Read(b)
			if err != nil {
				t.Fatalf("no %s from the telephone: %v; the last was %s", start, err, last)
			}
			if last = strings.ReplaceAll(string(b[:n]), "\r", ""); strings.HasPrefix(last, start) {
				return last
			}
		}
	}
	sdp := "v=0\no=evil 1 1 IN IP4 127.66.6.11\ns=-\nc=IN IP4 127.66.6.11\nt=0 0\nm=audio 40000 RTP/AVP 0\n"
	head := fmt.Sprintf("Via: SIP/2.0/UDP %s;branch=z9hG4bKcall;rport\nMax-Forwards: 70\nFrom: <sip:boss@x>;tag=1\nCall-ID: direct\n", local)
	send(fmt.Sprintf("INVITE sip:%s@127.0.0.1:%d SIP/2.0\n%sTo: <sip:%[1]s@x>\nCSeq: 1 INVITE\nRecord-Route: <sip:%[4]s;lr>\nContact: <%[5]s>\n"+
		"Content-Type: application/sdp\nContent-Length: %[6]d\n\n%[7]s", l.Username, phone.Port, head, local, target, len(sdp)+strings.Count(sdp, "\n"), sdp))
	to := rig.Field(read("SIP/2.0 200"), "To")
	send(fmt.Sprintf("ACK sip:%s@127.0.0.1:%d SIP/2.0\n%sTo: %s\nCSeq: 1 ACK\nContent-Length: 0\n\n", l.Username, phone.Port,
		strings.Replace(head, "z9hG4bKcall", "z9hG4bKack", 1), to))
	phone.Wait("CALL_ESTABLISHED", "")
	phone.Do("hangup", "")
	bye := read("BYE ")
	respond := func(bye, status, extra string) {
		send(fmt.Sprintf("SIP/2.0 %s\nVia: %s\nFrom: %s\nTo: %s\nCall-ID: direct\nCSeq: %s\n%sContent-Length: 0\n\n", status, rig.Field(bye, "Via"),
			rig.Field(bye, "From"), rig.Field(bye, "To"), rig.Field(bye, "CSeq"), extra))
	}
	respond(bye, "407 Proxy Authentication Required", "Proxy-Authenticate: "+challenge+"\n")
	for b := make([]byte, 4000); ; {
		_ = conn.SetReadDeadline(time.Now().Add(3 * time.Second))
		n, err := conn.Read(b)
		if err != nil {
			return ""
		}
		m := strings.ReplaceAll(string(b[:n]), "\r", "")
		if answer := rig.Field(m, "Proxy-Authorization"); answer != "" {
			respond(m, "200 OK", "")
			return answer
		}
	}
}
