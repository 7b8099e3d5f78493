package carrier

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/nyaruka/phonenumbers"
)

// A number that is missing here would be turned away by a node that stops or has too much to do.
func TestEveryEmergencyNumberIsKnownWithoutItsCountry(t *testing.T) {
	t.Parallel()
	for region := range phonenumbers.GetSupportedRegions() {
		code := "+" + strconv.Itoa(phonenumbers.GetCountryCodeForRegion(region))
		for digits := 2; digits <= 4; digits++ {
			for n, of := 0, []int{100, 1000, 10000}[digits-2]; n < of; n++ {
				number := fmt.Sprintf("%0*d", digits, n)
				if !phonenumbers.IsEmergencyNumber(number, region) {
					continue
				}
				for _, dialled := range []string{number, "9" + number, "00" + number, code + number, "tel:" + number} {
					if !MaybeEmergency(dialled) {
						t.Errorf("%s is not known to reach help in %s", dialled, region)
					}
				}
			}
		}
	}
	for _, dialled := range []string{"", "+", "2042", "300", "+12125550142", "2125550142", "ext:204", "911911911", "voicemail"} {
		if MaybeEmergency(dialled) {
			t.Errorf("%q is taken for an emergency number", dialled)
		}
	}
	if !MaybeEmergency("933") || !MaybeEmergency("10177") || !MaybeEmergency("９１１") {
		t.Error("a number that tests emergency calls, one of five digits, or one in full width is not known")
	}
}
