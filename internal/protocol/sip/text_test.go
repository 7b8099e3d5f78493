package sip_test

import (
	"context"
	"testing"

	"soniq/internal/protocol/sip"
)

func TestMessagesOfKnownSendersArePassedOn(t *testing.T) {
	t.Parallel()
	for _, network := range []string{"udp", "tcp"} {
		got := make(chan *sip.Message, 8)
		server := listen(t, sip.Config{Accounts: newBook().add("alice", "secret"), OnMessage: func(_ context.Context, m *sip.Message) { got <- m }})
		p := newPeer(t, network, server)
		p.ask("MESSAGE", "alice", "m1", 1, "Content-Type: text/plain\n")
		c := headerOf(p.expect("SIP/2.0 407"), "Proxy-Authenticate")
		p.ask("MESSAGE", "alice", "m1", 2, "Content-Type: text/plain\nProxy-Authorization: "+digest(c, "alice", "secret", "MESSAGE", 1)+"\n")
		m := <-got
		if m.Account != "id-alice" || m.From.URI.User != "alice" || m.ContentType != "text/plain" || m.Leg != nil {
			t.Errorf("got %+v", m)
		}
		m.Respond(202)
		p.expect("SIP/2.0 202")
		if len(got) > 0 {
			t.Error("a stranger's message was passed on")
		}
	}
}

func TestMessagesInsideACallNameIt(t *testing.T) {
	t.Parallel()
	got := make(chan *sip.Message, 8)
	server, e := listen(t, sip.Config{OnMessage: func(_ context.Context, m *sip.Message) { got <- m }}), newEvents()
	p := newPeer(t, "udp", server)
	p.ask("INVITE", "al", "c1", 1, "")
	in := server.incoming(t)
	in.Listen(e.on)
	in.Answer(offerSDP)
	ok := p.expect("SIP/2.0 200")
	dialog := "From: " + headerOf(ok, "From") + "\nTo: " + headerOf(ok, "To") + "\nCall-ID: c1\n"
	p.inside("ACK", dialog, 1, "", "")
	p.inside("MESSAGE", dialog, 2, "Content-Type: text/plain\n", "hello")
	m := <-got
	if m.Leg != in.Leg() || string(m.Body) != "hello" {
		t.Errorf("got %+v", m)
	}
	m.Respond(200)
	p.expect("SIP/2.0 200")
}

func TestMessagesNobodyWantsAre405(t *testing.T) {
	t.Parallel()
	p := newPeer(t, "udp", listen(t, sip.Config{}))
	p.ask("MESSAGE", "alice", "m1", 1, "")
	p.expect("SIP/2.0 405")
}
