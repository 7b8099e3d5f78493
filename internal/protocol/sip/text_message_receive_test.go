package sip_test

import (
	"context"
	"testing"

	"soniq/internal/protocol/sip"
)

func TestMessage_FromAuthenticatedSender(t *testing.T) {
	t.Parallel()
	for _, network := range []string{"udp", "tcp"} {
		got := make(chan *sip.Message, 8)
		receive := func(_ context.Context, m *sip.Message) { got <- m }
		server := newTestServer(t, sip.Config{Accounts: newFakeDirectory().addAccount("alice", "secret"), OnMessage: receive})
		p := newPeer(t, network, server)
		p.sendRequest("MESSAGE", "alice", "m1", 1, "Content-Type: text/plain\n")
		c := headerValue(p.wantMessage("SIP/2.0 407"), "Proxy-Authenticate")
		p.sendRequest("MESSAGE", "alice", "m1", 2, "Content-Type: text/plain\nProxy-Authorization: "+digestAuthorization(c, "alice", "secret", "MESSAGE", 1)+"\n")
		m := <-got
		if m.Account != "id-alice" || m.From.URI.User != "alice" || m.ContentType != "text/plain" || m.Leg != nil {
			t.Errorf("got %+v", m)
		}
		m.Respond(202)
		p.wantMessage("SIP/2.0 202")
		if len(got) > 0 {
			t.Error("a stranger's message was passed on")
		}
	}
}

func TestMessage_InsideCall(t *testing.T) {
	t.Parallel()
	got := make(chan *sip.Message, 8)
	server, e := newTestServer(t, sip.Config{OnMessage: func(_ context.Context, m *sip.Message) { got <- m }}), newEventLog()
	p := newPeer(t, "udp", server)
	p.sendRequest("INVITE", "al", "c1", 1, "")
	in := server.wantInbound(t)
	in.Listen(e.record)
	in.Answer(testOfferSDP)
	ok := p.wantMessage("SIP/2.0 200")
	dialog := "From: " + headerValue(ok, "From") + "\nTo: " + headerValue(ok, "To") + "\nCall-ID: c1\n"
	p.sendInDialog("ACK", dialog, 1, "", "")
	p.sendInDialog("MESSAGE", dialog, 2, "Content-Type: text/plain\n", "hello")
	m := <-got
	if m.Leg != in.Leg() || string(m.Body) != "hello" {
		t.Errorf("got %+v", m)
	}
	m.Respond(200)
	p.wantMessage("SIP/2.0 200")
}

func TestMessage_WithoutHandlerGets405(t *testing.T) {
	t.Parallel()
	p := newPeer(t, "udp", newTestServer(t, sip.Config{}))
	p.sendRequest("MESSAGE", "alice", "m1", 1, "")
	p.wantMessage("SIP/2.0 405")
}
