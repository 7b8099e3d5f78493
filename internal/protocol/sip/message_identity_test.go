package sip

import (
	"net/netip"
	"strings"
	"testing"
)

func parseTestMessage(t *testing.T, fields string) *message {
	t.Helper()
	m := &message{}
	raw := "INVITE sip:b@x SIP/2.0\r\nFrom: <sip:a@x>;tag=1\r\nTo: <sip:b@x>\r\n" + strings.ReplaceAll(fields, "\n", "\r\n") + "\r\n"
	if err := m.parse(raw, flow{}); err != nil {
		t.Fatal(err)
	}
	m.readParties()
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
		if got := (&Inbound{fields: parseTestMessage(t, fields).fields}).CalledParty().URI.User; got != want {
			t.Errorf("%q: %q, want %q", fields, got, want)
		}
	}
}

func TestIdentity_AssertedAndAnonymous(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fields    string
		user      string
		anonymous bool
	}{
		{"", "", false},
		{"P-Asserted-Identity: \"A\" <sip:+49301@x>, <tel:+49302>\n", "+49301", false},
		{"P-Asserted-Identity: <sip:x>\nP-Asserted-Identity: <tel:+49302>\n", "+49302", false},
		{"Remote-Party-ID: <sip:+49303@x>;party=calling;privacy=off\n", "+49303", false},
		{"Remote-Party-ID: <sip:+49303@x>;privacy=full\n", "+49303", true},
		{"Privacy: none\n", "", false},
		{"Privacy: header;ID\n", "", true},
		{"Privacy: critical\n", "", false},
		{"P-Asserted-Identity: @@@\n", "", false},
	} {
		m := parseTestMessage(t, c.fields)
		if got := m.assertedIdentity().URI.User; got != c.user || m.isAnonymous() != c.anonymous {
			t.Errorf("%q: %q, anonymous %v; want %q, %v", c.fields, got, m.isAnonymous(), c.user, c.anonymous)
		}
	}
}

func TestDiversion_ReadFromDiversionAndHistoryInfo(t *testing.T) {
	t.Parallel()
	for fields, wanted := range map[string]string{
		"": "",
		"Diversion: <sip:200@x>;reason=no-answer, \"Front\" <tel:100>;reason=unconditional\n":                                   "200 100",
		"History-Info: <sip:100@x>;index=1\n":                                                                                   "",
		"History-Info: <sip:100@x>;index=1, <sip:200@x;cause=302>;index=1.1\nHistory-Info: <sip:300@x;cause=408>;index=1.1.1\n": "200 100",
		"History-Info: <sip:100@x?Reason=SIP%3Bcause%3D486>;index=1, <sip:200@x>;index=1.1\n":                                   "100",
		"History-Info: <sip:100@x>;index=1, <sip:200@x>;index=1.1;mp=1, <sip:200@10.0.0.1>;index=1.1.1;rc=1.1\n":                "100",
		"Diversion: <sip:7@x>\nHistory-Info: <sip:100@x>;index=1, <sip:200@x;cause=302>;index=1.1\n":                            "7",
		"Diversion: nonsense\n": "",
	} {
		var got []string
		for _, a := range parseTestMessage(t, fields).diversions() {
			got = append(got, a.URI.User)
		}
		if strings.Join(got, " ") != wanted {
			t.Errorf("%q: %v, want %s", fields, got, wanted)
		}
	}
}

// Diversions that are written can be read again.
func TestDiversion_WrittenAsRead(t *testing.T) {
	t.Parallel()
	l := newTestShard(t)
	who := []Address{{Display: "Two", URI: URI{User: "200"}}, {URI: URI{User: "100", Host: "first.example"}}}
	for _, o := range []Outgoing{{Diversion: who}, {HistoryInfo: who}} {
		o.From.URI.Host = "our.example"
		lines, err := l.srv.inviteFields(&o, URI{Scheme: "sip", User: "300", Host: "x"})
		if err != nil {
			t.Fatal(err)
		}
		got := parseTestMessage(t, strings.ReplaceAll(lines, "\r\n", "\n")).diversions()
		if len(got) != 2 || got[0].URI.User != "200" || got[0].URI.Host != "our.example" || got[0].Display != "Two" || got[1].URI.Host != "first.example" {
			t.Errorf("wrote:\n%sread %+v", lines, got)
		}
	}
}

func TestHistoryInfo_EndsWithTarget(t *testing.T) {
	t.Parallel()
	l := newTestShard(t)
	lines, _ := l.srv.inviteFields(&Outgoing{HistoryInfo: []Address{{URI: URI{User: "200", Host: "h"}}}}, URI{User: "300", Host: "x"})
	want := "History-Info: <sip:200@h>;index=1\r\nHistory-Info: <sip:300@x;cause=302>;index=1.1;mp=1\r\n"
	if lines != want {
		t.Errorf("got:\n%swant:\n%s", lines, want)
	}
}

func TestIdentity_HeaderInjectionRefused(t *testing.T) {
	t.Parallel()
	l := newTestShard(t)
	evil := Address{URI: URI{User: "1", Host: "x>\r\nEvil: 1"}}
	for _, o := range []Outgoing{{Identity: evil}, {RemoteParty: evil}, {Diversion: []Address{evil}}, {HistoryInfo: []Address{evil}}} {
		if lines, err := l.srv.inviteFields(&o, URI{Host: "x"}); err == nil {
			t.Errorf("written: %q", lines)
		}
	}
	for _, o := range []Outgoing{{ReferredBy: "<sip:a>\r\nEvil: 1"}, {ReplacesDialog: "a\r\nEvil: 1"}} {
		if lines, _ := l.srv.inviteFields(&o, URI{Host: "x"}); strings.Contains(lines, "\nEvil") {
			t.Errorf("written: %q", lines)
		}
	}
}

// RFC 3325 §5: an identity asserted by a device is ignored, that of a trunk is used.
func TestIdentity_DeviceAssertionIgnored(t *testing.T) {
	t.Parallel()
	m := parseTestMessage(t, "P-Asserted-Identity: <sip:+1@x>\n")
	l := newTestShard(t)
	in := (&Leg{shard: l.shard}).newInbound(m)
	if in.Identity.URI.User != "+1" || in.Source != (netip.AddrPort{}) {
		t.Fatalf("got %+v", in)
	}
	in.setAccount(Account{ID: "a"})
	if in.Identity != (Address{}) || in.Account != "a" {
		t.Errorf("got %+v", in)
	}
}

// RFC 8224 §4: each Identity has a line of its own and is passed on unchanged.
func TestIdentity_PASSporTsWrittenAsRead(t *testing.T) {
	t.Parallel()
	l := newTestShard(t)
	first, second := `a.b.c;info=<https://x/1,2>;alg=ES256;ppt="shaken"`, "..d;info=<https://x/2>"
	in := (&Leg{shard: l.shard}).newInbound(parseTestMessage(t, "Identity: "+first+"\nP-Asserted-Identity: <sip:+1@x>\ny:"+second+"\n"+"Identity:\n"))
	if len(in.Passports) != 2 || in.Passports[0] != first || in.Passports[1] != second {
		t.Fatalf("read %q", in.Passports)
	}
	lines, err := l.srv.inviteFields(&Outgoing{Passports: append(in.Passports, "evil\r\nEvil: 1")}, URI{Host: "x"})
	if want := "Identity: " + first + "\r\nIdentity: " + second + "\r\nIdentity: evil  Evil: 1\r\n"; err != nil || lines != want {
		t.Errorf("wrote:\n%swant:\n%s", lines, want)
	}
	if many := parseTestMessage(t, strings.Repeat("Identity: a\n", 30)).passports(); len(many) != maxPassports {
		t.Errorf("%d are kept", len(many))
	}
}
