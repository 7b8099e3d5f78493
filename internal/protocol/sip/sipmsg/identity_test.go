package sipmsg

import (
	"net/netip"
	"strings"
	"testing"
)

func parseTestMessage(t *testing.T, fields string) *Message {
	t.Helper()
	m := &Message{}
	raw := "INVITE sip:b@x SIP/2.0\r\nFrom: <sip:a@x>;tag=1\r\nTo: <sip:b@x>\r\n" + strings.ReplaceAll(fields, "\n", "\r\n") + "\r\n"
	if err := m.Parse(raw, netip.AddrPort{}); err != nil {
		t.Fatal(err)
	}
	m.ReadParties()
	return m
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
		if got := m.AssertedIdentity().URI.User; got != c.user || m.IsAnonymous() != c.anonymous {
			t.Errorf("%q: %q, anonymous %v; want %q, %v", c.fields, got, m.IsAnonymous(), c.user, c.anonymous)
		}
	}
}

// https://github.com/2600hz/kazoo-configs-kamailio/pull/170
func TestRemoteParty_PartyAndPrivacy(t *testing.T) {
	t.Parallel()
	const called = "Remote-Party-ID: <sip:200@x>;party=called;privacy=full\n"
	for fields, want := range map[string]struct {
		user, display string
		anonymous     bool
	}{
		"Remote-Party-ID: \"A\" <sip:1@x>;privacy=off\n":              {"1", "A", false},
		"Remote-Party-ID: \"A\" <sip:1@x>;privacy=OFF;screen=yes\n":   {"1", "A", false},
		"Remote-Party-ID: \"A\" <sip:1@x>;privacy=uri\n":              {"1", "A", true},
		"Remote-Party-ID: \"A\" <sip:1@x>;privacy=yes\n":              {"1", "A", true},
		"Remote-Party-ID: \"A\" <sip:1@x>;privacy=full-network\n":     {"1", "A", true},
		"Remote-Party-ID: \"A\" <sip:1@x>;privacy\n":                  {"1", "A", true},
		"Remote-Party-ID: \"A\" <sip:1@x>;privacy=name\n":             {"1", "", false},
		"Remote-Party-ID: \"A\" <sip:1@x>;privacy=name;privacy=uri\n": {"1", "", true},
		"Remote-Party-ID: \"A\" <sip:1@x>;privacy=\"name,full\"\n":    {"1", "", true},
		"Remote-Party-ID: sip:1@x;privacy=full;x=\"<y>\"\n":           {"1", "", true},
		called: {"", "", false},
		called + "Remote-Party-ID: \"A\" <sip:1@x>;party=calling\n":                                {"1", "A", false},
		"Remote-Party-ID: <sip:200@x>;party=called, \"A\" <sip:1@x>;party=Calling;privacy=full\n":  {"1", "A", true},
		"Remote-Party-ID: \"A\" <sip:1@x>;party=calling;privacy=full, <sip:200@x>;party=called\n":  {"1", "A", true},
		"Remote-Party-ID: <sip:2@x>\nRemote-Party-ID: \"A\" <sip:1@x>;party=calling;privacy=off\n": {"1", "A", false},
		"Remote-Party-ID: <sip:1@x>;privacy=off, <sip:2@x>;privacy=full\n":                         {"1", "", true},
		"Remote-Party-ID: Bell, A. <sip:1@x>;privacy=full\n":                                       {"1", "A.", true},
		"Remote-Party-ID: Bell: A <sip:1@x>;privacy=full\n":                                        {"", "", true},
		// https://github.com/kamailio/kamailio/issues/2837
		"P-Asserted-Identity: <sip:+1@x>,\n\t<tel:+2>\n":                                  {"+1", "", false},
		"P-Asserted-Identity: \"A\" <sip:3@x>\nRemote-Party-ID: <sip:1@x>;privacy=name\n": {"3", "", false},
		"P-Asserted-Identity: \"A\" <sip:3@x>\nRemote-Party-ID: <sip:1@x>;privacy=full\n": {"3", "A", true},
		"Privacy: none\nPrivacy: critical;\tid\n":                                         {"", "", true},
	} {
		m := parseTestMessage(t, fields)
		if got := m.AssertedIdentity(); got.URI.User != want.user || got.Display != want.display || m.IsAnonymous() != want.anonymous {
			t.Errorf("%q: %q %q, anonymous %v; want %+v", fields, got.URI.User, got.Display, m.IsAnonymous(), want)
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
		for _, a := range parseTestMessage(t, fields).Diversions() {
			got = append(got, a.URI.User)
		}
		if strings.Join(got, " ") != wanted {
			t.Errorf("%q: %v, want %s", fields, got, wanted)
		}
	}
}

func TestPassports_NumberIsBounded(t *testing.T) {
	t.Parallel()
	if many := parseTestMessage(t, strings.Repeat("Identity: a\n", 30)).Passports(); len(many) != maxPassports {
		t.Errorf("%d are kept", len(many))
	}
}

// https://github.com/Mnexa-AI/e2a/issues/804
func TestAddress_DamagedDisplay(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"\"J\xf6rg\" <sip:a@x>":       "J\ufffdrg",
		"J\xf6rg <sip:a@x>":           "J\ufffdrg",
		"\"a\\\x00b\" <sip:a@x>":      "a\ufffdb",
		"\"\xed\xa0\x80\" <sip:a@x>":  "\ufffd",
		"\"Jörg 😀\" <sip:a@x>":        "Jörg 😀",
		"\"\\\"J\\\" \" <tel:+49301>": "\"J\" ",
	} {
		a, err := ReadAddress(value)
		if got := a.Address().Display; err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", value, got, err, want)
		}
	}
}
