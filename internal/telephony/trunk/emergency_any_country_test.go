package trunk

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"github.com/nyaruka/phonenumbers"
)

// A node that stops or is overloaded would reject an emergency number that is missing here.
func TestMaybeEmergency_AllCountries(t *testing.T) {
	t.Parallel()
	all, err := phonenumbers.ShortNumberMetadataCollection()
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string][]string{} // country codes by the pattern of their emergency numbers
	for _, m := range all.GetMetadata() {
		pattern := m.GetEmergency().GetNationalNumberPattern()
		codes[pattern] = append(codes[pattern], "+"+strconv.Itoa(phonenumbers.GetCountryCodeForRegion(m.GetId())))
	}
	known := 0
	for pattern, codes := range codes {
		matches := regexp.MustCompile("^(?:" + pattern + ")$")
		for digits := 2; digits <= 4; digits++ {
			for n, of := 0, []int{100, 1000, 10000}[digits-2]; n < of; n++ {
				number := fmt.Sprintf("%0*d", digits, n)
				if !matches.MatchString(number) {
					continue
				}
				known++
				for _, before := range append(codes, "", "9", "00", "tel:") {
					if !MaybeEmergency(before + number) {
						t.Errorf("%s%s is not known to reach help", before, number)
					}
				}
			}
		}
	}
	if known < 300 {
		t.Errorf("%d emergency numbers were found in the world", known)
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
