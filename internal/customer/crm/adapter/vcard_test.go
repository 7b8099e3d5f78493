package adapter

import (
	"slices"
	"strings"
	"testing"
)

// A written card keeps the lines of other programs byte for byte, also those that the decoder of the library changes.
func TestCard_OtherLinesUnchanged(t *testing.T) {
	t.Parallel()
	kept := []string{`TEL;TYPE="work,voice";PREF=1:+44 20 7946 0018`, `item1.TEL:+44 1`, `item1.X-ABLabel:a\;b\:c`, `NOTE:C:\\New\;x\, y`, `X-A;LABEL="a:b":\z`, "TEL;TYPE=FAX:9"}
	lines := slices.Concat([]string{"BEGIN:VCARD", "VERSION:3.0", `N:Hopper\; B;Grace;A,B;;`, "FN:Grace", "TITLE:Captain",
		"item2.EMAIL:old@example.com", "item2.X-ABLabel:gone"}, kept, []string{"END:VCARD"})
	c := parseCard(strings.Join(lines, "\r\n"))
	says := c.fields()
	if says.Parts != `Hopper\; B;Grace;A,B;;` || strings.Join(says.Phones, "|") != "+44 20 7946 0018|+44 1" {
		t.Errorf("read %+v", says)
	}
	says.Title, says.Emails = "Admiral, retired", nil
	out := c.withFields(says)
	for _, line := range append(kept, lines[2], `TITLE:Admiral\, retired`) {
		if !slices.Contains(out, line) {
			t.Errorf("%s is missing in\n%s", line, out.encode())
		}
	}
	if text := out.encode(); strings.Contains(text, "item2") || strings.Count(text, "END:VCARD") != 1 || !strings.HasSuffix(text, "END:VCARD\r\n") {
		t.Errorf("written:\n%s", text)
	}
}
