package itn

import (
	"strings"
	"testing"
)

// Addresses are written whichever engine wrote the sentence around them, and sentences about websites stay.
//
// https://github.com/saurabhav88/EnviousWispr/issues/2315
func TestAddresses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Please write to support at example.org.":                  "Please write to support@example.org.",
		"It's Bob underscore jones at example.net, thanks.":        "It's bob_jones@example.net, thanks.",
		"My address is anna dot smith at example dot com.":         "My address is anna.smith@example.com.",
		"Mail j dash d at blue-harbour.co.uk or call us":           "Mail j-d@blue-harbour.co.uk or call us",
		"Send it to Sales at Example.com and info at example.org!": "Send it to sales@example.com and info@example.org!",
		"Look at example.org.":                                     "Look at example.org.",
		"I am at example.org now.":                                 "I am at example.org now.",
		"I work at example.com.":                                   "I work at example.com.",
		"We met at noon.":                                          "We met at noon.",
		"It is anna@example.com.":                                  "It is anna@example.com.",
		"Call me at 5. Example.org is closed.":                     "Call me at 5. Example.org is closed.",
		"support at, example.org":                                  "support at, example.org",
		"":                                                         "",
	} {
		tokens := strings.Fields(text)
		found := Addresses(tokens)
		for i := len(found) - 1; i >= 0; i-- {
			a := found[i]
			tokens = append(tokens[:a.From], append([]string{a.Text}, tokens[a.To:]...)...)
		}
		if got := strings.Join(tokens, " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
