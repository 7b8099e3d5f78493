package voiceagent

import (
	"slices"
	"testing"
)

// TestSpokenText_WithoutMarkup proves that links are spoken as their label or host, and that signs of markup are not spoken.
//
// https://github.com/microsoft/BotFramework-WebChat/issues/2010
// https://github.com/fazer-ai/agents/issues/787
// https://github.com/purplefish-ai/factory-factory/pull/2126
func TestSpokenText_WithoutMarkup(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"**Important:** call *us* by __noon__":                       "Important: call us by noon",
		"see [our site](https://example.com/a?b=1 \"title\") please": "see our site please",
		"[](https://www.example.com/prices/?utm=x)":                  "example.com/prices",
		"![logo](https://example.com/logo.png) Acme":                 "logo Acme",
		"go to https://www.example.com/book?id=3#top.":               "go to example.com/book.",
		"go to **https://example.com/**, then call":                  "go to example.com, then call",
		"write to ada@example.com":                                   "write to ada@example.com",
		"## Opening hours":                                           "Opening hours",
		"- Monday to Friday":                                         "Monday to Friday",
		"> quoted":                                                   "quoted",
		"press # or *":                                               "press # or *",
		"press *9 to leave":                                          "press 9 to leave",
		"that is 3 * 4":                                              "that is 3 × 4",
		"3*4 is 12":                                                  "3 × 4 is 12",
		"the file `a_b.txt`":                                         "the file a b.txt",
		"| Mon | 9 to 5 |":                                           "Mon 9 to 5",
		"***both*** and _one_ *two* *three*":                         "both and one two three",
		"in C# and F#":                                               "in C# and F#",
		"[1] of 2":                                                   "1 of 2",
		"---":                                                        "---",
		"~~old~~ new":                                                "old new",
		"a (see [terms, and more](https://example.com/t)), and prices": "a (see terms, and more), and prices",
	} {
		if got := spokenText(text); got != want {
			t.Errorf("%q is spoken as %q, want %q", text, got, want)
		}
	}
}

func TestClauseSplitter_LinkInOnePart(t *testing.T) {
	t.Parallel()
	var parts []string
	var cut clauseSplitter
	for _, r := range "Please read all of [the terms, the prices and more. All](https://example.com/a, b) first. Thank you. [ odd, but said. Yes" {
		for _, p := range cut.add(string(r)) {
			parts = append(parts, spokenText(p))
		}
	}
	parts = append(parts, spokenText(cut.end()))
	want := []string{"Please read all of the terms, the prices and more. All first.", "Thank you.", "odd, but said. Yes"}
	if !slices.Equal(parts, want) {
		t.Errorf("got %q", parts)
	}
}
