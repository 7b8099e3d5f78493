package smscarrier

import (
	"strings"
	"testing"

	"soniq/internal/messaging/sms"
	"soniq/internal/protocol/smpp"
)

// TestSegments_AreParts proves that the API returns the number of parts that are sent as the number of segments. No part ends within a
// character, so each of them is readable alone. The texts are those of the reports.
//
// https://github.com/linxGnu/gosmpp/pull/198
// https://github.com/TwilioDevEd/message-segment-calculator/issues/18
// https://github.com/TwilioDevEd/message-segment-calculator/issues/57
// https://github.com/instasent/sms-counter-php/issues/15
// https://github.com/gammu/gammu/pull/104
// https://github.com/Nexmo/nexmo-developer/pull/1866
func TestSegments_AreParts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text     string
		segments int
	}{
		{strings.Repeat("a", 159) + `\`, 2},
		{strings.Repeat("a", 153) + `\` + strings.Repeat("a", 152), 3},
		{"this is a " + strings.Repeat("]", 75) + "😘", 2},
		{strings.Repeat("|", 24) + "{" + strings.Repeat("|", 28) + "∞" + strings.Repeat("|", 10) + "^" + strings.Repeat("|", 5), 1},
		{strings.Repeat("😎", 70), 3},
		{strings.Repeat("a", 66) + "😎" + strings.Repeat("a", 10), 2},
		{strings.Repeat("[", 160), 3},
		{strings.Repeat("]", 80), 1},
		{"Ünïcode ç", 1},
	} {
		_, n := sms.Segments(c.text)
		parts, err := smpp.TextSettings{}.Parts(c.text, 0)
		if err != nil || n != c.segments || len(parts) != c.segments {
			t.Errorf("%q: %d segments, %d parts, want %d; %v", c.text, n, len(parts), c.segments, err)
		}
		read := ""
		for i, p := range parts {
			octets := p.ShortMessage
			if len(parts) > 1 {
				octets = octets[1+octets[0]:] // behind the user data header
			}
			text, ok := smpp.TextSettings{}.Decode(p.DataCoding, octets)
			if read += text; !ok || strings.HasSuffix(string(octets), "\x1b") {
				t.Errorf("%q: part %d ends within a character: %x", c.text, i, octets)
			}
		}
		if read != c.text {
			t.Errorf("%q is read as %q", c.text, read)
		}
	}
}
