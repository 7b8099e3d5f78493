package sip_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"soniq/internal/protocol/sip"
)

// registerFlow registers a flow of a phone (RFC 5626) and returns the response.
func (p *peer) registerFlow(user, password string, reg int) string {
	p.t.Helper()
	id := fmt.Sprint("flow", reg)
	send := func(seq int, extra string) {
		p.send("REGISTER sip:x SIP/2.0\nVia: SIP/2.0/X %s;rport;branch=z9hG4bK%d\nFrom: <sip:%s@x>;tag=%s\nTo: <sip:%s@x>\nCall-ID: %s\nCSeq: %d REGISTER\nMax-Forwards: 70\n"+
			"Supported: path, outbound\nContact: <sip:%s@10.0.0.1;ob>;reg-id=%d;+sip.instance=\"<urn:uuid:0-1>\"\n%sContent-Length: 0\n\n",
			p.conn.LocalAddr(), requestSerial.Add(1), user, id, user, id, seq, user, reg, extra)
	}
	send(1, "")
	challenge := headerValue(p.wantMessage("SIP/2.0 401"), "WWW-Authenticate")
	send(2, "Authorization: "+digestAuthorization(challenge, user, password, "REGISTER", 1)+"\n")
	return p.wantMessage("SIP/2.0 200")
}

func TestOutbound_SeveralFlowsPerPhone(t *testing.T) {
	t.Parallel()
	book := newFakeDirectory().addAccount("alice", "secret")
	server := newTestServer(t, sip.Config{Accounts: book, Bindings: book})
	one, two := newPeer(t, "tcp", server), newPeer(t, "tcp", server)
	for i, p := range []*peer{one, two} {
		ok := p.registerFlow("alice", "secret", i+1)
		if headerValue(ok, "Require") != "outbound" || headerValue(ok, "Flow-Timer") != "120" {
			t.Errorf("the answer to a flow's REGISTER:\n%s", ok)
		}
	}
	all, _ := book.Load(context.Background(), "id-alice")
	phones := sip.GroupByPhone(all)
	if len(all) != 2 || len(phones) != 1 || len(phones[0]) != 2 {
		t.Fatalf("flows %+v", phones)
	}

	// A closed flow fails with 430, and the other one still works.
	gone := all[0]
	one.conn.Close()
	waitUntil(t, "the first flow gone", func() bool { return !server.Reachable(gone) })
	e := newEventLog()
	server.Server.Invite(context.Background(), sip.Outgoing{Binding: &gone, SDP: testOfferSDP}, e.record)
	if f := wantEvent[sip.Failed](t, e); f.Status != 430 {
		t.Errorf("over a flow that is gone: %+v", f)
	}
	server.Server.Invite(context.Background(), sip.Outgoing{Binding: &all[1], SDP: testOfferSDP}, e.record)
	two.wantMessage("INVITE sip:alice@10.0.0.1;ob")

	// The phone reconnects: its binding replaces the lost one.
	again := newPeer(t, "tcp", server)
	again.registerFlow("alice", "secret", 1)
	if all, _ = book.Load(context.Background(), "id-alice"); len(all) != 2 {
		t.Errorf("after coming back %d bindings", len(all))
	}
}

func TestWebSocket_ReloadReplacesBinding(t *testing.T) {
	t.Parallel()
	book := newFakeDirectory().addAccount("alice", "secret")
	server := newTestServer(t, sip.Config{Accounts: book, Bindings: book})
	address := serveWebSocket(t, server)
	for range 3 {
		p := newWebSocketPeer(t, address)
		p.register("alice", "secret")
		all, _ := book.Load(context.Background(), "id-alice")
		if len(all) != 1 {
			t.Errorf("%d bindings", len(all))
		}
		p.conn.Close()
		waitUntil(t, "the browser gone", func() bool { return !server.Reachable(all[0]) })
	}
}

func TestGroupByPhone_Order(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	b := func(contact, instance string, priority, age int) sip.Binding {
		return sip.Binding{Contact: contact, Instance: instance, Priority: priority, Registered: now.Add(-time.Duration(age) * time.Second)}
	}
	phones := sip.GroupByPhone([]sip.Binding{
		b("low", "", 100, 0), b("desk-old", "<urn:1>;1", 1000, 9), b("plain", "", 500, 0), b("desk-new", "<urn:1>;2", 1000, 1), b("cell", "<urn:2>;", 700, 0), b("plain2", "", 500, 0),
	})
	var got []string
	for _, flows := range phones {
		var names []string
		for _, f := range flows {
			names = append(names, f.Contact)
		}
		got = append(got, strings.Join(names, "+"))
	}
	if s := strings.Join(got, " "); s != "desk-new+desk-old cell plain plain2 low" {
		t.Errorf("order %s", s)
	}
}

func TestSTUN_BindingResponse(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		server := newTestServer(t, sip.Config{Addr: address})
		conn := dialUDP(t, server)
		request := append([]byte{0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42}, "twelve bytes"...)
		conn.Write(request)
		conn.SetReadDeadline(time.Now().Add(testTimeout))
		b := make([]byte, 100)
		n, err := conn.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		own := conn.LocalAddr().(*net.UDPAddr).AddrPort()
		size := len(own.Addr().AsSlice())
		if n != 32-4+size || !bytes.Equal(b[:2], []byte{1, 1}) || !bytes.Equal(b[4:20], request[4:]) ||
			binary.BigEndian.Uint16(b[26:])^0x2112 != own.Port() {
			t.Fatalf("answer %x", b[:n])
		}
		family := byte(1 + (size-4)/12)
		if !bytes.Equal(b[20:26], []byte{0, 0x20, 0, byte(4 + size), 0, family}) {
			t.Errorf("the attribute begins %x", b[20:26])
		}
		ip := make([]byte, size)
		for i := range ip {
			ip[i] = b[28+i] ^ request[4+i]
		}
		if a, _ := netip.AddrFromSlice(ip); a != own.Addr() {
			t.Errorf("it says we are %s, want %s", a, own.Addr())
		}
	}
}
