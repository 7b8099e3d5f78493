package sipmsg

import (
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
)

// https://github.com/AlticeLabsPublic/asterisk-i/issues/97
func TestReadAddress_ParametersOfBareURI(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]NameAddr{
		`sip:b@192.0.2.7;+sip.instance="<urn:uuid:1>"`:             {"", "sip:b@192.0.2.7", `;+sip.instance="<urn:uuid:1>"`},
		`sip:b@192.0.2.7 ;expires=60;+sip.instance="<urn:uuid:1>"`: {"", "sip:b@192.0.2.7", `;expires=60;+sip.instance="<urn:uuid:1>"`},
		`tel:+49301;x="a<b>;c,\"d"`:                                {"", "tel:+49301", `;x="a<b>;c,\"d"`},
		// https://github.com/versatica/JsSIP/issues/11
		`<sip:b@x;transport=udp>;+g.oma.sip-im;language="en,fr"`: {"", "sip:b@x;transport=udp", `;+g.oma.sip-im;language="en,fr"`},
		`sip:b@x;tag=1`:                    {"", "sip:b@x", ";tag=1"},
		` <sip:b@x;lr>;x="<y>"`:            {"", "sip:b@x;lr", `;x="<y>"`},
		`Bob B <sip:b@x>;x="<y>"`:          {"Bob B", "sip:b@x", `;x="<y>"`},
		`"a <sip:c@x>;" <sip:b@x>;x="<y>"`: {`"a <sip:c@x>;"`, "sip:b@x", `;x="<y>"`},
	} {
		got, err := ReadAddress(value)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", value, got, err, want)
		}
		first, rest := CutElement(value + ", <sip:next@x>")
		if first != strings.TrimSpace(value) || rest != "<sip:next@x>" {
			t.Errorf("%s in a list: %q and %q", value, first, rest)
		}
	}
	for _, bad := range []string{`sip:b@x>`, `a:b<sip:c@x>`, `Bell, A. <sip:b@x>`, `sip:a,b@x`, `sip:b@x?a=b`, `sip:b@x;a="b`, `<sip:b@x`, `"b" sip:b@x`, `sip:b@x;<y>`} {
		if got, err := ReadAddress(bad); err == nil {
			t.Errorf("%s reads %+v, want an error", bad, got)
		}
	}
}

// A tag is found without parsing the message, also behind a URI without brackets, and not in a display name.
func TestPeekMessage_TagOfTo(t *testing.T) {
	t.Parallel()
	for to, want := range map[string]bool{
		"<sip:b@x>;tag=1": true, "<sip:b@x>": false, "sip:b@x;tag=1": true, "sip:b@x": false, "sip:tag=1@x": false,
		`"a>;tag=1" <sip:b@x>`: false, `"a>" <sip:b@x>;x="<";tag=1`: true, "B <sip:b@x;tag=2>": false, `sip:b@x;a="<tag=>"`: false,
		"sip:b@x ;\tTAG = 1": true,
	} {
		p, ok := PeekMessage("BYE sip:b@x SIP/2.0\r\nCall-ID: 1\r\nVia: SIP/2.0/UDP x;branch=z9hG4bK1\r\nTo: " + to + "\r\n\r\n")
		if !ok || p.InDialog != want {
			t.Errorf("%s: in a dialog %v, want %v", to, p.InDialog, want)
		}
	}
}

func pickAny[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// text returns letters of an alphabet, at least one.
func text(r *rand.Rand, alphabet string) string {
	letters := []rune(alphabet)
	b := make([]rune, 1+r.IntN(8))
	for i := range b {
		b[i] = letters[r.IntN(len(letters))]
	}
	return string(b)
}

func generatedURI(r *rand.Rand) URI {
	params := pickAny(r, "", "lr", "transport=tcp;lr", "user=phone;x=%41%22;ob", "maddr=192.0.2.1;ttl=1")
	switch r.IntN(4) {
	case 0:
		return URI{Scheme: "tel", User: pickAny(r, "+", "") + text(r, "0123456789*#"), Params: pickAny(r, "", "phone-context=example.com;ext=7")}
	case 1:
		return URI{Scheme: pickAny(r, "urn", "https", "im"), User: text(r, "abc:/.@?=&-_0")}
	}
	host := pickAny(r, "example.com", "192.0.2.1", "2001:db8::1", "a_b-c.Example", "::ffff:192.0.2.1")
	return URI{Scheme: pickAny(r, "sip", "sips"), User: pickAny(r, "", text(r, "aZ09-_.!~*'()&=+$,;?/%:@\"<> \\#[]äß😀")), Host: host,
		Port: pickAny(r, 0, 5060, 65535, 1), Params: params}
}

func generatedAddress(r *rand.Rand) Address {
	return Address{Display: pickAny(r, "", text(r, "aB \"\\<>;,:@=?()äß😀'%\t")), URI: generatedURI(r)}
}

// readBack returns how each field with an address reads it.
func readBack(t *testing.T, field, value string) (found []Address) {
	t.Helper()
	raw := "INVITE sip:b@x SIP/2.0\r\nFrom: <sip:a@x>;tag=1\r\nTo: <sip:b@x>\r\n"
	if field == "From" || field == "To" {
		raw = "INVITE sip:b@x SIP/2.0\r\n"
	}
	m := &Message{}
	if err := m.Parse(raw+field+": "+value+"\r\n\r\n", netip.AddrPort{}); err != nil {
		t.Fatal(err)
	}
	m.ReadParties()
	switch field {
	case "From":
		return append(found, m.From.Addr.Address())
	case "To":
		return append(found, m.To.Addr.Address())
	case "P-Asserted-Identity", "Remote-Party-ID":
		if got := m.AssertedIdentity(); got.URI.User != "" {
			return append(found, got)
		}
	case "Diversion":
		return m.Diversions()
	}
	for _, v := range m.ListNamed(field) {
		a, err := ReadAddress(v)
		if err != nil {
			t.Fatalf("%s: %s cannot be read: %v", field, v, err)
		}
		found = append(found, a.Address())
	}
	return found
}

// Addresses that were written, read and written again are the same in every field, alone and in a list.
func TestAddress_WriteReadWrite(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 32))
	lists := map[string]bool{"Contact": true, "Record-Route": true, "Route": true, "Path": true, "Diversion": true}
	for range 3000 {
		one, other := generatedAddress(r), generatedAddress(r)
		params := pickAny(r, "", ";tag=1", `;x="<sip:c@y>;\"";y`, ";party=calling;privacy=off", " ; q = 0.5")
		for _, field := range []string{"Contact", "From", "To", "P-Asserted-Identity", "Remote-Party-ID", "Record-Route", "Route", "Path", "Refer-To",
			"Referred-By", "Diversion"} {
			want := one
			want.Display = strings.ReplaceAll(want.Display, "\t", " ") // no control characters in quoted strings
			value := string(one.AppendTo(nil)) + params
			if lists[field] {
				value += pickAny(r, ",", ", ", " ,\t") + string(other.AppendTo(nil))
			}
			found := readBack(t, field, value)
			if len(found) == 0 || lists[field] && len(found) != 2 {
				t.Fatalf("%s: %s reads %d addresses", field, value, len(found))
			}
			if got := found[0]; got != want || string(got.AppendTo(nil)) != string(one.AppendTo(nil)) {
				t.Fatalf("%s: %s reads %+v, want %+v", field, value, got, want)
			}
			if again := found[len(found)-1]; lists[field] && string(again.AppendTo(nil)) != string(other.AppendTo(nil)) {
				t.Fatalf("%s: the second of %s reads %+v", field, value, again)
			}
		}
		// Without brackets a URI reads the same, unless it has characters that need them.
		if bare := one.URI.String(); one.Display == "" && !strings.ContainsAny(bare, ";,?") {
			a, err := ReadAddress(bare + `;x="<y>"`)
			if err != nil || a.Address() != one || a.Params != `;x="<y>"` {
				t.Fatalf("%s without brackets: %+v, %v", bare, a, err)
			}
		}
	}
}
