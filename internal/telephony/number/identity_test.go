package number_test

import (
	"testing"

	"soniq/internal/telephony/number"
)

// https://github.com/chatwoot/chatwoot/issues/14174
func TestIdentity_OneTelephone(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{ // the spelling of today and the other one
		{"+525512345678", "+5215512345678"}, {"+528112345678", "+5218112345678"}, {"+5491123456789", "+541123456789"}, {"+5493511234567", "+543511234567"},
		{"+5511987654321", "+551187654321"}, {"+5521998765432", "+552198765432"}, {"+5531976543210", "+553176543210"}, {"+5541961234567", "+554161234567"},
		{"+576012345678", "+5712345678"}, {"+2290197123456", "+22997123456"},
	} {
		for _, n := range c {
			given, other := number.Spellings(n)
			if number.Identity(n) != c[0] || given != n || other == n || number.Identity(other) != c[0] {
				t.Errorf("%s is %s, spelt %s and %s; want %s", n, number.Identity(n), given, other, c[0])
			}
		}
		if all := number.AllSpellings(c[:1]); len(all) != 2 || all[0] != c[0] || all[1] != c[1] {
			t.Errorf("spellings %v, want %v", all, c)
		}
	}
}

// Numbers of other people stay apart, and texts that are no numbers stay as they are.
func TestIdentity_OtherNumbersUnchanged(t *testing.T) {
	t.Parallel()
	for _, n := range []string{"", "+", "anonymous", "100", "sip:a@b.example", "+12125550142", "+491701234567", "+390612345678", "+52551234567",
		"+52155123456789", "+5411234567", "+551134567890", "+5511934567890", "+5511951234567", "+55119876543210", "+573001234567", "+22912345", "+5", "+55", "+5511"} {
		given, other := number.Spellings(n)
		if given != n || other != n || number.Identity(n) != n {
			t.Errorf("%q: %q, %q, %q", n, given, other, number.Identity(n))
		}
	}
	if number.Identity("+525512345678") == number.Identity("+525512345679") || number.Identity("+541123456789") == number.Identity("+541123456780") {
		t.Error("two telephones are one")
	}
}

// Spellings of before are read, as E.164 and as they were dialled, and stay as they are.
func TestParse_FormerSpellings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, country, want string }{
		{"+52 1 55 1234 5678", "", "+5215512345678"}, {"1 55 1234 5678", "MX", "+5215512345678"}, {"+52 55 1234 5678", "", "+525512345678"},
		{"044 55 1234 5678", "MX", "+525512345678"}, {"045 81 1234 5678", "MX", "+528112345678"}, {"01 55 1234 5678", "MX", "+525512345678"},
		{"+54 9 11 2345 6789", "", "+5491123456789"}, {"011 15 2345 6789", "AR", "+5491123456789"}, {"+55 11 8765 4321", "", "+551187654321"},
		{"+57 1 2345678", "", "+5712345678"}, {"+229 97 12 34 56", "", "+22997123456"}, {"+52 1 55 1234 56789", "", ""}, {"+49 1", "", ""}, {"044 55 1234", "MX", ""},
	} {
		if got, ok := number.Parse(c.text, c.country); got != c.want || ok != (c.want != "") {
			t.Errorf("%q in %q is %q, want %q", c.text, c.country, got, c.want)
		}
	}
}
