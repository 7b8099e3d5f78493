package sip_test

import (
	"fmt"
	"net/netip"
	"testing"

	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/sipmsg"
)

func TestIsLocalURI(t *testing.T) {
	t.Parallel()
	here := newTestServer(t, sip.Config{Realm: "voice.example", Names: []string{"pbx.example.com"}, PublicIP: netip.MustParseAddr("203.0.113.7")})
	everywhere := newTestServer(t, sip.Config{Addr: "0.0.0.0:0", Realm: "soniq"})
	port := func(p *testServer) uint16 { return p.Addr().Port() }
	for _, c := range []struct {
		at   *testServer
		host string
		ours bool
	}{
		{here, "voice.example", true}, {here, "Voice.Example.", true}, {here, "pbx.example.com:5070", true}, {here, "203.0.113.7", true},
		{here, "127.0.0.1", true}, {here, fmt.Sprintf("127.0.0.1:%d", port(here)), true}, {here, "localhost", true},
		{here, fmt.Sprintf("127.0.0.1:%d", port(here)+1), false}, {here, "127.0.0.2", false}, {here, "[::1]", false},
		{here, "partner.example", false}, {here, "sub.voice.example", false}, {here, "203.0.113.8", false},
		{everywhere, "127.0.0.2", true}, {everywhere, "198.51.100.1", false}, {everywhere, "[::1]", false}, {everywhere, "voice.example", false},
	} {
		for _, scheme := range []string{"sip", "sips"} {
			u, err := sipmsg.ParseURI(scheme + ":101@" + c.host)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.at.IsLocalURI(u); got != c.ours {
				t.Errorf("%s, at %s: ours %t, want %t", u, c.at.Addr(), got, c.ours)
			}
		}
	}
	if here.IsLocalURI(sipmsg.URI{Scheme: "tel", User: "+12025550143"}) {
		t.Error("a tel: address is at no server")
	}
}
