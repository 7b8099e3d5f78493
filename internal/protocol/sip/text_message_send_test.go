package sip_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/sipmsg"
)

func TestSendMessage_ToRegisteredPhone(t *testing.T) {
	t.Parallel()
	got := make(chan *sip.Message, 1)
	phone := newTestServer(t, sip.Config{Accounts: sip.AnySource{}, OnMessage: func(_ context.Context, m *sip.Message) {
		got <- m
		m.Respond(map[string]int{"hello ж": 200}[string(m.Body)])
	}})
	server := newTestServer(t, sip.Config{})
	b := sip.Binding{Contact: "sip:alice@" + phone.Addr().String(), Source: phone.Addr(), Transport: "udp", Expires: time.Now().Add(time.Hour)}
	status, err := server.SendMessage(context.Background(), sip.OutgoingMessage{Binding: b,
		From: sipmsg.Address{URI: sipmsg.URI{User: "+12025550143"}}, To: sipmsg.Address{URI: sipmsg.URI{User: "101", Host: "pbx.example"}},
		CallID: "reference-1", Body: []byte("hello ж")})
	if err != nil || status != 200 {
		t.Fatalf("%d %v", status, err)
	}
	m := <-got
	if m.From.URI.User != "+12025550143" || m.To.URI.User != "101" || m.CallID != "reference-1" || m.CSeq != 1 || !strings.HasPrefix(m.ContentType, "text/plain") {
		t.Errorf("got %+v", m)
	}
}

func TestSendMessage_LostConnectionIsUnsent(t *testing.T) {
	t.Parallel()
	server := newTestServer(t, sip.Config{})
	b := sip.Binding{Contact: "sip:alice@127.0.0.1:9;transport=tcp", Source: server.Addr(), Transport: "tcp", Flow: 99}
	_, err := server.SendMessage(context.Background(), sip.OutgoingMessage{Binding: b, Body: []byte("x")})
	var refused *sip.StatusError
	if !errors.As(err, &refused) || !refused.Unsent {
		t.Errorf("got %v", err)
	}
}
