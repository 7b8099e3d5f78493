package sip_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"soniq/internal/protocol/sip"
)

// registeringPhone sends REGISTER requests of alice with any fields.
type registeringPhone struct {
	*peer
	book      *fakeDirectory
	challenge string
	seq       int
}

func newRegisteringPhone(t *testing.T) *registeringPhone {
	t.Helper()
	book := newFakeDirectory().addAccount("alice", "secret")
	p := &registeringPhone{peer: newPeer(t, "udp", newTestServer(t, sip.Config{Accounts: book, Bindings: book})), book: book}
	p.challenge = headerValue(p.register("<sip:alice@x>", ""), "WWW-Authenticate")
	return p
}

// register sends a REGISTER, with credentials after the first one, and returns the response. aor is the value of From and To.
func (p *registeringPhone) register(aor, fields string) string {
	p.t.Helper()
	if p.seq++; p.challenge != "" {
		fields += "Authorization: " + digestAuthorization(p.challenge, "alice", "secret", "REGISTER", p.seq) + "\n"
	}
	p.send("REGISTER sip:x SIP/2.0\nVia: SIP/2.0/UDP %s;branch=z9hG4bK%d;rport\nMax-Forwards: 70\nFrom: %s;tag=f\nTo: %s\nCall-ID: contacts\n"+
		"CSeq: %d REGISTER\n%sContent-Length: 0\n\n", p.conn.LocalAddr(), requestSerial.Add(1), aor, aor, p.seq, fields)
	return p.read()
}

// contacts returns the Contacts that are stored.
func (p *registeringPhone) contacts() (all []string) {
	p.t.Helper()
	stored, err := p.book.Load(context.Background(), "id-alice")
	if err != nil {
		p.t.Fatal(err)
	}
	for _, b := range stored {
		all = append(all, b.Contact)
	}
	return all
}

// TestRegister_UnreadableContacts proves that a Contact that cannot be read is refused with 400. Nothing of that REGISTER is stored.
// https://github.com/kamailio/kamailio/issues/4926
// https://github.com/OpenSIPS/opensips/issues/3510
// https://github.com/fozavci/viproy-voipkit/issues/14
func TestRegister_UnreadableContacts(t *testing.T) {
	t.Parallel()
	const good = "sip:alice@192.0.2.1"
	p := newRegisteringPhone(t)
	if m := p.register("<sip:alice@x>", "Contact: <"+good+">\n"); !strings.HasPrefix(m, "SIP/2.0 200") {
		t.Fatalf("a good one is answered\n%s", m)
	}
	for _, bad := range []string{
		"<sip:alice@192.0.2.10:5060transport=udp>;expires=3600", "<sip:User000341@:;transport=UDP>",
		"<sip:alice@>", "<sip:alice@;rinstance=1>",
		"<sip:alice@host:10501:20367>", "<sip:alice@192.0.2.10:0>", "<sip:alice@192.0.2.10:70000>",
		"<sip:alice@[2001:db8::1>", "<sip:al ice@x>",
		"<sip:alice@192.0.2.10", "sip:alice@192.0.2.10>", "<sip:alice@192.0.2.10>x", "<>", "<alice>", "alice", "\"a <sip:alice@192.0.2.10>",
		"<tel:+49301234567>", "<*>", "*;q=1", "<sip:alice@192.0.2.10>;=1", "<sip:alice@a/b>", "<sip:alice@x%41>",
	} {
		for _, value := range []string{bad, "<sip:alice@192.0.2.2>, " + bad, "<sip:alice@192.0.2.2>\nContact: " + bad} {
			m := p.register("<sip:alice@x>", "Contact: "+value+"\n")
			got := p.contacts()
			if !strings.HasPrefix(m, "SIP/2.0 400") || len(headerValues(m, "Contact")) != 0 || !slices.Equal(got, []string{good}) {
				t.Errorf("%s: %q are stored, answered\n%s", value, got, m)
			}
		}
	}
	if m := p.register("<sip:alice@x>", ""); !slices.Equal(headerValues(m, "Contact"), []string{"<" + good + ">;expires=3599"}) &&
		!slices.Equal(headerValues(m, "Contact"), []string{"<" + good + ">;expires=3600"}) {
		t.Errorf("a query is answered\n%s", m)
	}
}

// TestRegister_UnusualContacts proves that a number sign in a user part, a URI without a user before its @, and a star are understood.
// https://github.com/jart/gosip/issues/12
// https://github.com/onsip/SIP.js/issues/560
// https://github.com/aboutsip/pkts/issues/39
func TestRegister_UnusualContacts(t *testing.T) {
	t.Parallel()
	p := newRegisteringPhone(t)
	for _, c := range []struct{ fields, stored string }{
		{"Contact: <sip:PBX#1000#905448737777@192.0.2.1>\n", "sip:PBX%231000%23905448737777@192.0.2.1"},
		{"Contact: <sip:@192.0.2.2:5062>\n", "sip:PBX%231000%23905448737777@192.0.2.1 sip:192.0.2.2:5062"},
		{"Contact: <sip:PBX%231000%23905448737777@192.0.2.1>;expires=0\n", "sip:192.0.2.2:5062"}, // the same URI, escaped
		{"Contact: *\nExpires: 0\nRegMode: DEVICE;Describe=IPC-S642-IR;Register;DevVer=CIPC-B2301.5.21.200528\n" +
			"ReplaceDescribe: IPC-S642-IR;Ptzfg=1;;SnmpVer=v3\nAbility: UCSStore=0\n", ""},
	} {
		m := p.register("<sip:alice@x>", c.fields)
		if got := strings.Join(p.contacts(), " "); !strings.HasPrefix(m, "SIP/2.0 200") || got != c.stored {
			t.Errorf("%s: %s is stored, want %s, answered\n%s", c.fields, got, c.stored, m)
		}
		for i, contact := range strings.Fields(c.stored) {
			if all := headerValues(m, "Contact"); len(all) != len(strings.Fields(c.stored)) || !strings.HasPrefix(all[i], "<"+contact+">;expires=") {
				t.Errorf("%s: the answer has %q", c.fields, all)
			}
		}
	}
	if m := p.register("<sip:@x>", "Contact: <sip:@192.0.2.1>\n"); !strings.HasPrefix(m, "SIP/2.0 403") || len(p.contacts()) != 0 {
		t.Errorf("an address of record without a user is answered\n%s", m)
	}
	p.challenge = ""
	if m := p.register("<sip:@x>", "Contact: <sip:@192.0.2.1>\n"); !strings.HasPrefix(m, "SIP/2.0 401") {
		t.Errorf("an address of record without a user and without credentials is answered\n%s", m)
	}
}
