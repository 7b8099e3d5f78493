package sip_test

import (
	"net"
	"testing"
	"time"

	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/sipmsg"
)

func TestNATKeepalive_SendsOptions(t *testing.T) {
	t.Parallel()
	book := newFakeDirectory().addAccount("alice", "secret")
	server := newTestServer(t, sip.Config{Accounts: book, Bindings: book, NATKeepalive: 50 * time.Millisecond})
	hidden, open := newPeer(t, "udp", server), newPeer(t, "udp", server)
	at := func(p *peer, contact string) sip.Binding {
		return sip.Binding{Contact: contact, Source: p.conn.LocalAddr().(*net.UDPAddr).AddrPort(), Transport: sipmsg.UDP,
			Expires: time.Now().Add(time.Minute)}
	}
	server.RestoreRegistrations([]sip.Binding{at(hidden, "sip:alice@192.168.1.9:5060"),
		at(open, "sip:alice@"+open.conn.LocalAddr().String())})
	for range 3 {
		m := hidden.wantMessage("OPTIONS sip:alice@192.168.1.9:5060 SIP/2.0")
		hidden.respond(m, 200, "t", "")
	}
	open.wantSilence(200 * time.Millisecond)
}
