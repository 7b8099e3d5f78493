package sip

import (
	"net/netip"
	"strings"
	"testing"

	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/protocol/sip/transport"
)

// receivedInvite returns an INVITE with further header fields.
func receivedInvite(t *testing.T, fields string) *received {
	t.Helper()
	m := &received{}
	raw := "INVITE sip:b@x SIP/2.0\r\nFrom: <sip:a@x>;tag=1\r\nTo: <sip:b@x>\r\n" + strings.ReplaceAll(fields, "\n", "\r\n") + "\r\n"
	if err := m.parse(raw, transport.Flow{}); err != nil {
		t.Fatal(err)
	}
	m.ReadParties()
	return m
}

func TestInbound_CalledParty(t *testing.T) {
	t.Parallel()
	for fields, want := range map[string]string{
		"": "",
		"P-Called-Party-ID: \"A <b>\" <sip:+49301@x;user=phone>;y=z\n": "+49301",
		"p-called-party-id: sip:+49301@x;y=z\n":                        "+49301",
		"P-Called-Party-ID: <tel:+49301>\n":                            "+49301",
		"P-Called-Party-ID: <sip:+49301@x\n":                           "",
	} {
		if got := (&Inbound{fields: receivedInvite(t, fields).Fields}).CalledParty().URI.User; got != want {
			t.Errorf("%q: %q, want %q", fields, got, want)
		}
	}
}

// Diversions that are written can be read again.
func TestDiversion_WrittenAsRead(t *testing.T) {
	t.Parallel()
	l := newTestShard(t)
	who := []sipmsg.Address{{Display: "Two", URI: sipmsg.URI{User: "200"}}, {URI: sipmsg.URI{User: "100", Host: "first.example"}}}
	for _, o := range []Outgoing{{Diversion: who}, {HistoryInfo: who}} {
		o.From.URI.Host = "our.example"
		lines, err := l.srv.inviteFields(&o, sipmsg.URI{Scheme: "sip", User: "300", Host: "x"})
		if err != nil {
			t.Fatal(err)
		}
		got := receivedInvite(t, strings.ReplaceAll(lines, "\r\n", "\n")).Diversions()
		if len(got) != 2 || got[0].URI.User != "200" || got[0].URI.Host != "our.example" || got[0].Display != "Two" || got[1].URI.Host != "first.example" {
			t.Errorf("wrote:\n%sread %+v", lines, got)
		}
	}
}

func TestHistoryInfo_EndsWithTarget(t *testing.T) {
	t.Parallel()
	l := newTestShard(t)
	lines, _ := l.srv.inviteFields(&Outgoing{HistoryInfo: []sipmsg.Address{{URI: sipmsg.URI{User: "200", Host: "h"}}}},
		sipmsg.URI{User: "300", Host: "x"})
	want := "History-Info: <sip:200@h>;index=1\r\nHistory-Info: <sip:300@x;cause=302>;index=1.1;mp=1\r\n"
	if lines != want {
		t.Errorf("got:\n%swant:\n%s", lines, want)
	}
}

func TestIdentity_HeaderInjectionRefused(t *testing.T) {
	t.Parallel()
	l := newTestShard(t)
	evil := sipmsg.Address{URI: sipmsg.URI{User: "1", Host: "x>\r\nEvil: 1"}}
	for _, o := range []Outgoing{{Identity: evil}, {RemoteParty: evil}, {Diversion: []sipmsg.Address{evil}},
		{HistoryInfo: []sipmsg.Address{evil}}} {
		if lines, err := l.srv.inviteFields(&o, sipmsg.URI{Host: "x"}); err == nil {
			t.Errorf("written: %q", lines)
		}
	}
	for _, o := range []Outgoing{{ReferredBy: "<sip:a>\r\nEvil: 1"}, {ReplacesDialog: "a\r\nEvil: 1"}} {
		if lines, _ := l.srv.inviteFields(&o, sipmsg.URI{Host: "x"}); strings.Contains(lines, "\nEvil") {
			t.Errorf("written: %q", lines)
		}
	}
}

// RFC 3325 §5: an identity asserted by a device is ignored, that of a trunk is used.
func TestIdentity_DeviceAssertionIgnored(t *testing.T) {
	t.Parallel()
	m := receivedInvite(t, "P-Asserted-Identity: <sip:+1@x>\n")
	l := newTestShard(t)
	in := (&Leg{shard: l.shard}).newInbound(m)
	if in.Identity.URI.User != "+1" || in.Source != (netip.AddrPort{}) {
		t.Fatalf("got %+v", in)
	}
	in.setAccount(Account{ID: "a"})
	if in.Identity != (sipmsg.Address{}) || in.Account != "a" {
		t.Errorf("got %+v", in)
	}
}

// RFC 8224 §4: each Identity has a line of its own and is passed on unchanged.
func TestIdentity_PASSporTsWrittenAsRead(t *testing.T) {
	t.Parallel()
	l := newTestShard(t)
	first, second := `a.b.c;info=<https://x/1,2>;alg=ES256;ppt="shaken"`, "..d;info=<https://x/2>"
	in := (&Leg{shard: l.shard}).newInbound(receivedInvite(t, "Identity: "+first+"\nP-Asserted-Identity: <sip:+1@x>\ny:"+second+"\n"+"Identity:\n"))
	if len(in.Passports) != 2 || in.Passports[0] != first || in.Passports[1] != second {
		t.Fatalf("read %q", in.Passports)
	}
	lines, err := l.srv.inviteFields(&Outgoing{Passports: append(in.Passports, "evil\r\nEvil: 1")}, sipmsg.URI{Host: "x"})
	if want := "Identity: " + first + "\r\nIdentity: " + second + "\r\nIdentity: evil  Evil: 1\r\n"; err != nil || lines != want {
		t.Errorf("wrote:\n%swant:\n%s", lines, want)
	}
}
