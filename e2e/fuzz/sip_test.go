package fuzz

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"soniq/e2e/limit"
	"soniq/e2e/rig"
	"soniq/internal/protocol/sip"
)

// requests returns the requests of RFC 4475 and typical requests of telephones.
func requests(t testing.TB, w way) [][]byte {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(rig.Root(), "internal", "protocol", "sip", "testdata", "torture", "*.dat"))
	var all [][]byte
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, home(b))
	}
	if len(all) < 40 {
		t.Fatalf("%d messages of RFC 4475", len(all))
	}
	for _, number := range []string{w.user, w.flow} {
		for _, offer := range offers {
			all = append(all, request("INVITE", "sip:"+number+"@127.0.0.1", "Content-Type: application/sdp\r\n", offer))
		}
	}
	for method, more := range map[string]string{
		"OPTIONS": "Accept: application/sdp\r\n", "REGISTER": "Expires: 3600\r\nAuthorization: Digest username=\"a\", realm=\"soniq\", nonce=\"x\", uri=\"sip:x\", " +
			"response=\"00000000000000000000000000000000\", algorithm=SHA-256, cnonce=\"y\", qop=auth, nc=00000001\r\n",
		"SUBSCRIBE": "Event: dialog\r\nExpires: 600\r\nAccept: application/dialog-info+xml\r\n", "PUBLISH": "Event: presence\r\nExpires: 60\r\n",
		"REFER": "Refer-To: <sip:+12125550142@127.0.0.1?Replaces=a%3Bto-tag%3Db%3Bfrom-tag%3Dc>\r\nReferred-By: <sip:a@b>\r\n",
		"PRACK": "RAck: 776656 1 INVITE\r\n", "UPDATE": "Session-Expires: 90;refresher=uac\r\nMin-SE: 90\r\n", "CANCEL": "", "BYE": "Reason: Q.850;cause=16\r\n", "ACK": "",
		"NOTIFY": "Event: refer\r\nSubscription-State: terminated;reason=noresource\r\n",
	} {
		all = append(all, request(method, "sip:"+w.user+"@127.0.0.1", more, nil))
	}
	all = append(all, request("MESSAGE", "sip:"+w.user+"@127.0.0.1", "Content-Type: text/plain;charset=utf-8\r\n", []byte("good morning")),
		request("INFO", "sip:x@127.0.0.1", "Content-Type: application/dtmf-relay\r\n", []byte("Signal=5\r\nDuration=160\r\n")),
		[]byte("SIP/2.0 200 OK\r\nVia: SIP/2.0/UDP 127.0.0.1;branch=z9hG4bKx\r\nFrom: <sip:a@b>;tag=a\r\nTo: <sip:c@d>;tag=b\r\nCall-ID: x\r\nCSeq: 1 INVITE\r\nContact: <sip:c@127.0.0.1>\r\nContent-Length: 0\r\n\r\n"))
	return all
}

// request returns a valid request.
func request(method, uri, more string, body []byte) []byte {
	return fmt.Appendf(nil, "%s %s SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1:5060;branch=z9hG4bKseed;rport\r\nMax-Forwards: 70\r\n"+
		"From: \"A\" <sip:+12135550100@127.0.0.1>;tag=a\r\nTo: <%s>\r\nCall-ID: seed\r\nCSeq: 1 %s\r\nContact: <sip:a@127.0.0.1:5060;ob>;+sip.instance=\"<urn:uuid:0>\"\r\n"+
		"Allow: INVITE, ACK, BYE, CANCEL, OPTIONS, UPDATE\r\nSupported: replaces, timer, 100rel, path\r\n%s"+"Content-Length: %d\r\n\r\n%s", method, uri, uri, method, more, len(body), body)
}

var requestWords = []string{"INVITE", "ACK", "BYE", "CANCEL", "OPTIONS", "REGISTER", "SUBSCRIBE", "NOTIFY", "REFER", "INFO", "MESSAGE", "PRACK", "UPDATE", "PUBLISH",
	"SIP/2.0", "SIP/3.0", "sip:", "sips:", "tel:+1", ";tag=", ";branch=z9hG4bK", ";lr", ";rport", ";received=127.0.0.1", ";maddr=127.0.0.2", ";transport=tcp",
	";ttl=1", ";expires=0", "*", "Via:", "v:", "To:", "From:", "Call-ID:", "i:", "CSeq:", "Contact:", "m:", "Route: <sip:127.0.0.1;lr>", "Record-Route: <sip:127.0.0.1;lr>",
	"Content-Length: 0", "l: 99999", "Require: 100rel", "Require: nothing", "Proxy-Require: x", "Supported: timer", "Session-Expires: 1", "Min-SE: 0", "Replaces: seed;to-tag=a;from-tag=b",
	"Content-Type: multipart/mixed;boundary=x", "Content-Encoding: gzip", "Expires: 4294967296", "Max-Forwards: 0", "Event: message-summary", "Privacy: id",
	"P-Asserted-Identity: <sip:+1@127.0.0.1>", "Diversion: <sip:a@127.0.0.1>", "History-Info: <sip:a@127.0.0.1>;index=1", "Path: <sip:127.0.0.1;lr>", "Authorization: Digest",
	"\r\n ", "\r\n\r\n", "%00", "\x00", "\"", "\\\"", "<", ">", "@", "[::1]", "127.0.0.1:0"}

var (
	callIDs  = regexp.MustCompile(`(?im)^(call-id|i)[ \t]*:[^\r\n]*`)
	branches = regexp.MustCompile(`branch=z9hG4bK[^;,\s]*`)
	lengths  = regexp.MustCompile(`(?im)^(content-length|l)[ \t]*:[^\r\n]*`)
)

// own gives a message a Call-ID and branch of its own, so that it is not a retransmission; one in eight stays
// unchanged.
func (f *stand) own(m *mutator, b []byte) []byte {
	if m.oneIn(8) {
		return b
	}
	id := fmt.Sprintf("%x-%x", f.seed, m.Uint64())
	b = callIDs.ReplaceAllLiteral(b, []byte("Call-ID: "+id))
	b = branches.ReplaceAllLiteral(b, []byte("branch=z9hG4bK"+id))
	if head, body, ok := bytes.Cut(b, []byte("\r\n\r\n")); ok && !m.oneIn(3) {
		b = append(lengths.ReplaceAllLiteral(head, fmt.Appendf(nil, "Content-Length: %d", len(body))), b[len(head):]...)
	}
	return b
}

// TestSIP_AnyMessages sends mutated messages by UDP and TCP, from unknown addresses and from a carrier that may call.
func TestSIP_AnyMessages(t *testing.T) {
	t.Parallel()
	f := newStand(t)
	bob := f.AddUser("Bob")
	w := f.way(bob)
	f.phone(bob, func(*sip.Inbound) []byte { return theirs })
	carrier := f.open(fmt.Sprintf("%s:%d", w.ip, w.port), func(*sip.Inbound) []byte { return theirs })
	f.begin()
	f.throwMessages(w)
	f.sound(carrier, w.user)
	f.ends()
}

func (f *stand) throwMessages(w way) {
	f.T.Helper()
	seeds := requests(f.T, w)
	talk := f.dialogue(w)
	var open held
	defer open.close()
	var strangers net.Conn
	for m := f.next(seeds, requestWords); m != nil; m = f.next(seeds, requestWords) {
		b := f.own(m, home(m.one()))
		switch m.IntN(4) {
		case 0: // an unknown address, by UDP
			if strangers == nil || m.oneIn(20) {
				strangers = f.connect("udp", f.origin())
				open.keep(strangers)
			}
			f.sent("udp", b)
			_, _ = strangers.Write(b)
		case 1: // by TCP, several messages in a row, and not always the end of the last
			from := net.ParseIP(w.ip)
			if m.oneIn(2) {
				from = f.origin()
			}
			conn := f.connect("tcp", from)
			open.keep(conn)
			for n := 1 + m.IntN(3); n > 0; n-- {
				f.sent("tcp", b)
				_, _ = conn.Write(b)
				b = f.own(m, home(m.one()))
			}
			if m.oneIn(2) {
				_ = conn.(*net.TCPConn).CloseWrite()
			}
		default: // a carrier
			talk.send(m, b)
		}
		if f.rounds.Load()%50 == 0 {
			f.alive()
		}
	}
	talk.close()
}

// connect opens a connection to the server's SIP port from an address.
func (f *stand) connect(network string, from net.IP) net.Conn {
	f.T.Helper()
	d := net.Dialer{LocalAddr: &net.UDPAddr{IP: from}, Timeout: limit.Hang(0)}
	if network == "tcp" {
		d.LocalAddr = &net.TCPAddr{IP: from}
	}
	conn, err := d.Dial(network, f.Server.SIP)
	if err != nil {
		f.T.Fatal(err)
	}
	return conn
}

// held are connections that stay open for a while.
type held []net.Conn

func (h *held) keep(c net.Conn) {
	*h = append(*h, c)
	for len(*h) > 30 {
		end((*h)[0])
		*h = (*h)[1:]
	}
}

func (h *held) close() {
	for _, c := range *h {
		end(c)
	}
}

// end closes a connection with a reset, so that its port is free at once.
func end(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// dialogue is a carrier that sends arbitrary messages and reads the responses. It ends calls that come about, after a
// few messages inside them.
type dialogue struct {
	f    *stand
	conn net.Conn
	done chan struct{}
}

func (f *stand) dialogue(w way) *dialogue {
	f.T.Helper()
	d := &dialogue{f: f, conn: f.connect("udp", net.ParseIP(w.ip)), done: make(chan struct{})}
	go d.read(f.round(0, requests(f.T, w), requestWords))
	return d
}

func (d *dialogue) send(_ *mutator, b []byte) {
	d.f.sent("carrier", b)
	_, _ = d.conn.Write(b)
}

// lastCSeq is the highest CSeq (RFC 3261 §8.1.1.5).
const lastCSeq = 1<<31 - 1

// read reads responses. To a 2xx of an INVITE it sends ACK, sometimes other messages, and BYE.
func (d *dialogue) read(m *mutator) {
	defer close(d.done)
	b := make([]byte, 65536)
	for {
		n, err := d.conn.Read(b)
		if err != nil {
			if strings.Contains(err.Error(), "closed") {
				return
			}
			continue
		}
		text := string(b[:n])
		number, method, _ := strings.Cut(value(text, "CSeq"), " ")
		if !strings.HasPrefix(text, "SIP/2.0 2") || method != "INVITE" {
			continue
		}
		var seq int
		_, _ = fmt.Sscan(number, &seq)
		inside := func(method string, seq int, body string) []byte {
			contact := strings.Trim(strings.Split(value(text, "Contact"), ";")[0], "<>")
			return fmt.Appendf(nil, "%s %s SIP/2.0\r\nVia: SIP/2.0/UDP %s;branch=z9hG4bK%x;rport\r\nMax-Forwards: 70\r\nFrom: %s\r\nTo: %s\r\nCall-ID: %s\r\n"+
				"CSeq: %d %s\r\nContact: <sip:a@%s>\r\nContent-Type: application/sdp\r\nContent-Length: %d\r\n\r\n%s", method, contact, d.conn.LocalAddr(), m.Uint64(),
				value(text, "From"), value(text, "To"), value(text, "Call-ID"), seq, method, d.conn.LocalAddr(), len(body), body)
		}
		_, _ = d.conn.Write(inside("ACK", seq, ""))
		for more := range 1 + m.IntN(4) {
			method := pick(m, []string{"INVITE", "UPDATE", "INFO", "REFER", "NOTIFY", "MESSAGE", "OPTIONS", "PRACK", "SUBSCRIBE"})
			within := home(m.change(inside(method, seq+more+1, string(pick(m, offers)))))
			d.f.sent("in a call", within)
			_, _ = d.conn.Write(within)
		}
		bye := inside("BYE", lastCSeq, "") // those before may have had any CSeq: a lower one is refused (RFC 3261 §12.2.2)
		for range 2 {                      // twice, because otherwise a held call would last long
			_, _ = d.conn.Write(bye)
		}
	}
}

func (d *dialogue) close() {
	_ = d.conn.Close()
	<-d.done
}

// value returns the value of a header field.
func value(message, name string) string {
	return rig.Field(strings.ReplaceAll(message, "\r", ""), name)
}
