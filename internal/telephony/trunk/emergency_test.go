package trunk_test

import (
	"testing"

	"soniq/internal/telephony/number/shortnumber"
	"soniq/internal/telephony/trunk"
)

func TestEmergencyNumber_Recognised(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ country, dialled, want string }{
		{"US", "911", "911"}, {"US", "9911", "911"}, {"US", "9 911", "911"}, {"US", "+1911", "911"}, {"US", "112", "112"},
		{"US", "tel:911", "911"}, {"US", "9-1-1", "911"}, {"US", "999", ""}, {"US", "9112", "112"}, {"US", "91", ""},
		{"US", "9111", ""}, {"US", "+12029110000", ""}, {"US", "1911", ""}, {"US", "411", ""},
		{"GB", "999", "999"}, {"GB", "9999", "999"}, {"GB", "112", "112"}, {"GB", "0112", "112"}, {"GB", "+44999", "999"},
		{"GB", "+112", "112"}, {"GB", "911", ""}, {"GB", "99999", "999"}, {"GB", "0999", "999"}, {"GB", "101", ""},
		{"DE", "110", "110"}, {"DE", "112", "112"}, {"DE", "0110", "110"}, {"DE", "0112", "112"}, {"DE", "00112", "112"},
		{"DE", "+49112", "112"}, {"DE", "+49110", "110"}, {"DE", "0301100", ""}, {"DE", "11000", ""}, {"DE", "115", ""},
		{"FR", "15", "15"}, {"FR", "17", "17"}, {"FR", "18", "18"}, {"FR", "112", "112"}, {"FR", "015", "15"},
		{"AU", "000", "000"}, {"AU", "0000", "000"}, {"AU", "106", "106"}, {"AU", "112", "112"},
		{"NZ", "111", "111"}, {"IN", "112", "112"}, {"JP", "110", "110"}, {"JP", "119", "119"}, {"BR", "190", "190"},
		{"CA", "911", "911"}, {"MX", "911", "911"}, {"CH", "144", "144"}, {"IE", "999", "999"}, {"ZA", "10111", "10111"},
		{"JP", "118", "118"}, {"JP", "0118", "118"}, {"JP", "+81118", "118"}, {"FR", "114", "114"}, {"FR", "0115", "115"}, {"FR", "119", "119"},
		{"FR", "191", "191"}, {"FR", "+33196", "196"}, {"FR", "tel:197", "197"}, {"FR", "116117", ""}, {"US", "988", ""}, {"US", "118", ""},
		{"DE", "", ""}, {"DE", "0", ""}, {"DE", "+", ""}, {"DE", "alarm", ""}, {"", "112", "112"},
	} {
		number, ok := trunk.EmergencyNumber(c.country, c.dialled)
		if ok != (c.want != "") || ok && number != c.want {
			t.Errorf("%s dials %q: %q %v, want %q", c.country, c.dialled, number, ok, c.want)
		}
	}
}

// https://github.com/fusionpbx/fusionpbx/pull/5869
func TestReservedExtension_TableNumbers(t *testing.T) {
	t.Parallel()
	for number, countries := range shortnumber.Emergency() {
		for _, country := range countries {
			if !trunk.ReservedExtension(country, number) || !trunk.MaybeEmergency(number) || !trunk.MaybeReserved(number) {
				t.Errorf("%s can be an extension in %s, or is refused under overload", number, country)
			}
			if got, ok := trunk.EmergencyNumber(country, "9"+number); !ok || got == "" {
				t.Errorf("9 %s is no emergency number in %s", number, country)
			}
		}
	}
	for _, c := range [][2]string{{"JP", "118"}, {"FR", "114"}, {"FR", "115"}, {"FR", "119"}, {"FR", "191"}, {"FR", "196"}, {"FR", "197"}, {"US", "988"}, {"CA", "988"}} {
		if !trunk.ReservedExtension(c[0], c[1]) || !trunk.MaybeReserved(c[1]) {
			t.Errorf("%s can be an extension in %s", c[1], c[0])
		}
	}
	for _, c := range [][2]string{{"US", "118"}, {"GB", "101"}, {"GB", "111"}, {"DE", "988"}, {"DE", "115"}, {"US", "411"}, {"DE", "116117"}} {
		if trunk.ReservedExtension(c[0], c[1]) {
			t.Errorf("%s is reserved in %s", c[1], c[0])
		}
	}
}

func TestReservedExtension_EmergencyNumbers(t *testing.T) {
	t.Parallel()
	for e, want := range map[string]bool{"110": true, "112": true, "0112": true, "100": false, "111": false, "9110": true} {
		if got := trunk.ReservedExtension("DE", e); got != want {
			t.Errorf("%s: %v, want %v", e, got, want)
		}
	}
}
