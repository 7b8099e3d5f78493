package sipmsg

import (
	"net/netip"
	"testing"
)

// inviteWith parses an INVITE with this value of a field and returns the refusal of the message; nil: none.
func inviteWith(t *testing.T, field, value string) (*Message, *Refusal) {
	t.Helper()
	raw := "INVITE sip:b@x SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK1\r\nCall-ID: 1\r\nCSeq: 1 INVITE\r\nMax-Forwards: 70\r\n"
	for _, f := range [][2]string{{"From", "<sip:a@x>"}, {"To", "<sip:b@x>"}, {"Contact", "<sip:a@x>"}, {"P-Asserted-Identity", "<sip:a@x>"}} {
		if f[0] == field {
			f[1] = value
		}
		raw += f[0] + ": " + f[1] + ";tag=1\r\n"
	}
	m := &Message{}
	if err := m.Parse(raw+"Content-Length: 0\r\n\r\n", netip.AddrPort{}); err != nil {
		t.Fatal(err)
	}
	if r := m.ReadMandatory(); r != nil {
		return m, r
	}
	return m, m.Validate("INVITE")
}

// TestReadMandatory_DisplayNames proves that display names are read in every field: quoted ones with angle brackets, empty ones, those
// directly before the URI, and those with other letters than ASCII. Parameters behind them may have an exclamation mark in the name.
// https://github.com/sipcapture/homer/issues/846
// https://github.com/StefanKopieczek/gossip/issues/26
// https://github.com/kamailio/kamailio/issues/3682
// https://github.com/theintencity/sip-js/issues/3
// https://github.com/theintencity/p2p-sip/issues/11
// https://github.com/DoubangoTelecom/doubango/issues/333
func TestReadMandatory_DisplayNames(t *testing.T) {
	t.Parallel()
	const device = `;+u.sip!devicename.ccm.cisco.com="SEP5486BC7F2BBC"`
	for value, display := range map[string]string{
		`"a <b@c>" <sip:foo@bar.example>`:                     "a <b@c>",
		`"a <b@c>"<sip:foo@bar.example>`:                      "a <b@c>",
		`"> <sip:b@c>;tag=2" <sip:foo@bar.ex>`:                "> <sip:b@c>;tag=2",
		`"John"<sip:foo@bar.example>`:                         "John",
		`Jane<sip:foo@bar.example>`:                           "Jane",
		`Jane  Q.<sip:foo@bar.example>`:                       "Jane  Q.",
		`"" <sip:foo@bar.example>;epid=a22edc`:                "",
		`""<sip:foo@bar.example>`:                             "",
		`"中文字符"<sip:foo@bar.example>`:                         "中文字符",
		`中文字符 <sip:foo@bar.example>`:                          "中文字符",
		`"Jörg Süß" <sip:foo@bar.example>`:                    "Jörg Süß",
		`<sip:foo@172.17.64.120:5060;transport=tcp>` + device: "",
		`"SEP" <sip:foo@172.17.64.120>` + device:              "SEP",
	} {
		for _, field := range []string{"From", "To", "Contact", "P-Asserted-Identity"} {
			m, refused := inviteWith(t, field, value)
			if refused != nil {
				t.Errorf("%s: %s is refused: %+v", field, value, refused)
				continue
			}
			got, params := m.AssertedIdentity(), ";tag=1"
			switch contacts := m.List(FieldContact); field {
			case "From":
				got, params = m.From.Addr.Address(), m.From.Addr.Params
			case "To":
				got, params = m.To.Addr.Address(), m.To.Addr.Params
			case "Contact":
				a, _ := ReadAddress(contacts[0])
				got, params = a.Address(), a.Params
			}
			if tag, _ := ParamOf(params, "tag"); got.Display != display || got.URI.User != "foo" || tag != "1" {
				t.Errorf("%s: %s reads %+v with %s", field, value, got, params)
			}
			if name, ok := ParamOf(params, "+u.sip!devicename.ccm.cisco.com"); ok && name != "SEP5486BC7F2BBC" {
				t.Errorf("%s: %s has the parameters %s", field, value, params)
			}
		}
	}
}

// TestReadMandatory_MalformedDisplayNames proves that names that are neither a quoted string nor tokens are refused with 400, as RFC 4475
// §3.1.2.15 proposes.
// https://github.com/erlnets/nksip/issues/20
// https://github.com/onsip/SIP.js/issues/100
// https://github.com/poroh/ersip/issues/26
func TestReadMandatory_MalformedDisplayNames(t *testing.T) {
	t.Parallel()
	for _, value := range []string{
		`""unknown"" <sip:unknown@x>`, `""unknown"<sip:unknown@x>`, `"Anonymous" sip:anonymous@synthesis-switch.e164`,
		`Anonymous sip:anonymous@x`, `Bond, James  <sip:bond@mi6.example>`, `Bell: A <sip:a@x>`, `"Bell <sip:a@x>`,
	} {
		for _, field := range []string{"From", "To", "Contact"} {
			if _, r := inviteWith(t, field, value); r == nil || r.Status != 400 || r.Reason != "Bad "+field {
				t.Errorf("%s: %s: %+v", field, value, r)
			}
		}
	}
}
