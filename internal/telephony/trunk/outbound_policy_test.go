package trunk_test

import (
	"testing"

	"soniq/internal/identity/org"
	"soniq/internal/telephony/trunk"
)

func newPolicy(country string, change func(*org.Outbound)) trunk.Policy {
	p := trunk.Policy{Country: country, Outbound: org.Defaults(country).Outbound}
	if change != nil {
		change(&p.Outbound)
	}
	return p
}

func TestPolicy_DefaultAllowsOwnCountryOnly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		country, dialled string
		want             trunk.Reason
		number           string
	}{
		{"GB", "020 7946 0018", trunk.Allowed, "+442079460018"},
		{"GB", "+44 (0)20 7946 0018", trunk.Allowed, "+442079460018"},
		{"GB", "00442079460018", trunk.Allowed, "+442079460018"},
		{"GB", "tel:+442079460018;ext=3", trunk.Allowed, "+442079460018"},
		{"GB", "07400 123456", trunk.Allowed, "+447400123456"},  // mobile
		{"GB", "0800 800150", trunk.Allowed, "+44800800150"},    // free of charge
		{"GB", "0300 123 4567", trunk.Allowed, "+443001234567"}, // standard cost by law
		{"GB", "09012345678", trunk.NumberTypeBlocked, ""},      // premium
		{"GB", "0845 464 0000", trunk.NumberTypeBlocked, ""},    // shared cost
		{"GB", "070 1234 5678", trunk.NumberTypeBlocked, ""},    // personal number
		{"GB", "+33142685300", trunk.CountryNotAllowed, ""},
		{"GB", "01481 256789", trunk.CountryNotAllowed, ""}, // Guernsey shares +44
		{"GB", "12", trunk.InvalidNumber, ""},
		{"GB", "", trunk.InvalidNumber, ""},
		{"GB", "7946 0018", trunk.InvalidNumber, ""}, // local, without area code
		{"GB", "sip:x@example.com", trunk.InvalidNumber, ""},
		{"US", "(202) 456-1111", trunk.Allowed, "+12024561111"},
		{"US", "+18004377950", trunk.Allowed, "+18004377950"},
		{"CA", "+18004377950", trunk.Allowed, "+18004377950"}, // free of charge in all of North America
		{"US", "+19002345678", trunk.NumberTypeBlocked, ""},
		{"US", "+14165550100", trunk.CountryNotAllowed, ""}, // Toronto
		{"US", "+18765123456", trunk.CountryNotAllowed, ""}, // Jamaica
		{"US", "+18095621234", trunk.CountryNotAllowed, ""}, // Dominican Republic
		{"US", "+14412345678", trunk.CountryNotAllowed, ""}, // Bermuda
		{"US", "+12844941234", trunk.CountryNotAllowed, ""}, // British Virgin Islands
		{"US", "+17875551234", trunk.CountryNotAllowed, ""}, // Puerto Rico has a code of its own
		{"CA", "+12024561111", trunk.CountryNotAllowed, ""},
		{"DE", "030 1234567", trunk.Allowed, "+49301234567"},
		{"DE", "0900 1234567", trunk.NumberTypeBlocked, ""},
		{"DE", "0180 5 123456", trunk.NumberTypeBlocked, ""},
		{"DE", "+881612345678", trunk.CountryNotAllowed, ""}, // satellite
		{"DE", "+870773111632", trunk.CountryNotAllowed, ""},
		{"DE", "+80012345678", trunk.CountryNotAllowed, ""},
		{"DE", "+979123456789", trunk.CountryNotAllowed, ""},
		{"RU", "8 495 123-45-67", trunk.Allowed, "+74951234567"},
		{"RU", "+77272345678", trunk.CountryNotAllowed, ""}, // Kazakhstan shares +7
	} {
		v := newPolicy(c.country, nil).Evaluate(c.dialled)
		if v.Reason != c.want || c.want == trunk.Allowed && v.Number != c.number {
			t.Errorf("%s dials %q: %+v, want %q %s", c.country, c.dialled, v, c.want, c.number)
		}
	}
}

func TestPolicy_AllowedCountriesAndBlockedTypes(t *testing.T) {
	t.Parallel()
	open := func(countries, blocked []string) trunk.Policy {
		return newPolicy("US", func(o *org.Outbound) { o.AllowedCountries, o.BlockedTypes = countries, blocked })
	}
	for _, c := range []struct {
		p       trunk.Policy
		dialled string
		want    trunk.Reason
	}{
		{open([]string{"US", "JM"}, nil), "+18765123456", trunk.Allowed},
		{open([]string{"US", "JM"}, nil), "+14412345678", trunk.CountryNotAllowed},
		{open([]string{"JM"}, nil), "+12024561111", trunk.CountryNotAllowed},
		{open([]string{"US"}, nil), "+19002345678", trunk.Allowed},
		{open([]string{"US", "001"}, []string{"satellite"}), "+881612345678", trunk.NumberTypeBlocked},
		{open([]string{"US", "001"}, []string{"premium_rate"}), "+881612345678", trunk.Allowed},
		{open([]string{"US"}, []string{"mobile"}), "+12024561111", trunk.Allowed}, // may be either
		{open(nil, nil), "+12024561111", trunk.CountryNotAllowed},
	} {
		if v := c.p.Evaluate(c.dialled); v.Reason != c.want {
			t.Errorf("%v dials %s: %+v, want %q", c.p.Outbound.AllowedCountries, c.dialled, v, c.want)
		}
	}
}

func TestPolicy_DisabledAndSuspended(t *testing.T) {
	t.Parallel()
	p := newPolicy("GB", func(o *org.Outbound) { o.Enabled = false })
	if v := p.Evaluate("02079460018"); v.Reason != trunk.OutboundDisabled {
		t.Errorf("switched off: %+v", v)
	}
	p.Suspended = true
	if v := p.Evaluate("02079460018"); v.Reason != trunk.OrgSuspended {
		t.Errorf("suspended: %+v", v)
	}
}

func FuzzPolicyEvaluate(f *testing.F) {
	for _, s := range []string{"020 7946 0018", "+44 (0)20", "tel:+1;ext=3", "\x00", "٠١٢٣", "+", "*#06#", "1e309", "00000000000000000000000"} {
		f.Add("GB", s)
	}
	f.Fuzz(func(t *testing.T, country, dialled string) {
		v := newPolicy("GB", nil).Evaluate(dialled)
		if v.Reason == trunk.Allowed && (len(v.Number) < 8 || v.Number[:3] != "+44") {
			t.Errorf("%q leaves as %+v", dialled, v)
		}
		_, _ = trunk.EmergencyNumber(country, dialled)
	})
}

func BenchmarkPolicyEvaluate(b *testing.B) {
	p := newPolicy("GB", nil)
	b.ReportAllocs()
	for b.Loop() {
		if v := p.Evaluate("+442079460018"); v.Reason != trunk.Allowed {
			b.Fatal(v)
		}
	}
}

// https://github.com/fusionpbx/fusionpbx/pull/5869
func TestEvaluateCall_ShortNumbers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ country, dialled, number string }{
		{"US", "988", "988"}, {"US", "9988", "988"}, {"CA", "988", "988"}, {"US", "411", "411"}, {"US", "9 411", "411"}, {"US", "+1211", "211"},
		{"US", "tel:711;phone-context=+1", "711"}, {"DE", "116117", "116117"}, {"DE", "116 117", "116117"}, {"DE", "0116117", "116117"},
		{"DE", "+49116117", "116117"}, {"DE", "115", "115"}, {"FR", "116000", "116000"}, {"GB", "101", "101"}, {"GB", "9111", "111"}, {"GB", "+44105", "105"},
		{"US", "116117", ""}, {"DE", "101", ""}, {"US", "+49116117", ""}, {"DE", "988", ""}, {"GB", "12", ""},
	} {
		v := newPolicy(c.country, nil).EvaluateCall(c.dialled)
		if c.number != "" && (v.Reason != trunk.Allowed || v.Number != c.number || v.Country != c.country) || c.number == "" && v.Reason == trunk.Allowed {
			t.Errorf("%s dials %q: %+v, want %q", c.country, c.dialled, v, c.number)
		}
	}
	for want, change := range map[trunk.Reason]func(*trunk.Policy){
		trunk.CountryNotAllowed: func(p *trunk.Policy) { p.Outbound.AllowedCountries = []string{"FR"} },
		trunk.NumberTypeBlocked: func(p *trunk.Policy) { p.Outbound.BlockedTypes = []string{"toll_free"} },
		trunk.OutboundDisabled:  func(p *trunk.Policy) { p.Outbound.Enabled = false },
		trunk.OrgSuspended:      func(p *trunk.Policy) { p.Suspended = true },

		trunk.EmergencyNotAcknowledged: func(p *trunk.Policy) { p.EmergencyUnacknowledged = true },
	} {
		for country, dialled := range map[string]string{"US": "988", "DE": "116117", "GB": "9101"} {
			p := newPolicy(country, nil)
			if change(&p); p.EvaluateCall(dialled).Reason != want {
				t.Errorf("%s in %s: %+v, want %s", dialled, country, p.EvaluateCall(dialled), want)
			}
		}
	}
}

// A number that is valid in another spelling can be called, in the spelling that was dialled.
// https://github.com/chatwoot/chatwoot/issues/14174
func TestEvaluate_FormerSpelling(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ country, dialled, number string }{
		{"MX", "+5215512345678", "+5215512345678"}, {"MX", "+525512345678", "+525512345678"}, {"MX", "044 55 1234 5678", "+525512345678"},
		{"BR", "+551187654321", "+551187654321"}, {"BR", "+5511987654321", "+5511987654321"}, {"AR", "+5491123456789", "+5491123456789"},
	} {
		if v := newPolicy(c.country, nil).Evaluate(c.dialled); v.Reason != trunk.Allowed || v.Number != c.number || v.Country != c.country {
			t.Errorf("%s: %+v", c.dialled, v)
		}
	}
	elsewhere := newPolicy("US", nil)
	if v := elsewhere.Evaluate("+5215512345678"); v.Reason != trunk.CountryNotAllowed {
		t.Errorf("%+v", v)
	}
}
