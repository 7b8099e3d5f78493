package sip_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"soniq/internal/protocol/sip"
)

// TestVia_ReceivedIsSource proves that every response states the address that its request came from, whatever the Via of the request says.
// https://github.com/GlomarGadaffi/pocket-dial/issues/146
func TestVia_ReceivedIsSource(t *testing.T) {
	t.Parallel()
	book := newFakeDirectory().addAccount("alice", "secret")
	server := newTestServer(t, sip.Config{Accounts: book, Bindings: book})
	for _, network := range []string{"udp", "tcp"} {
		p := newPeerFrom(t, network, server, "127.0.0.2")
		port := netip.MustParseAddrPort(p.conn.LocalAddr().String()).Port()
		for i, c := range []struct {
			method, tag, fields string
			status              int
		}{
			{"OPTIONS", "", "", 200},
			{"REGISTER", "", "", 401},
			{"PUBLISH", "", "", 405},
			{"BYE", ";tag=1", "", 481},
			{"CANCEL", "", "", 481},
			{"JUMP", "", "", 501},
			{"OPTIONS", "", "Require: x\n", 420},
			{"OPTIONS", "", "Max-Forwards: 70\n", 400}, // twice
			{"INVITE", "", "Contact: <sip:alice@10.99.99.99:5078>\n", 407},
		} {
			via := fmt.Sprintf("SIP/2.0/%s 10.99.99.99:5078;branch=z9hG4bKvia%s%d", strings.ToUpper(network), network, i)
			p.send("%s sip:x SIP/2.0\nVia: %s;received=192.0.2.9;rport\nVia: SIP/2.0/UDP 192.0.2.8;branch=z9hG4bKnext\nMax-Forwards: 70\n"+
				"From: <sip:alice@x>;tag=f\nTo: <sip:alice@x>%s\nCall-ID: via%s%d\nCSeq: 1 %s\n%sContent-Length: 0\n\n",
				c.method, via, c.tag, network, i, c.method, c.fields)
			want := []string{fmt.Sprintf("%s;received=127.0.0.2;rport=%d", via, port), "SIP/2.0/UDP 192.0.2.8;branch=z9hG4bKnext"}
			for final := false; !final; {
				m := p.read()
				final = !strings.HasPrefix(m, "SIP/2.0 100")
				if got := headerValues(m, "Via"); strings.Join(got, "|") != strings.Join(want, "|") {
					t.Errorf("%s, %s: the Vias are %q, want %q", network, strings.TrimSpace(c.method+" "+c.fields), got, want)
				}
				if final && !strings.HasPrefix(m, fmt.Sprint("SIP/2.0 ", c.status)) {
					t.Errorf("%s, %s is answered\n%s", network, c.method, m)
				}
			}
		}
	}
}
