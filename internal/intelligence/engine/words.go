package engine

import "strings"

// TruncateText shortens a text to a limit in bytes, at a word.
func TruncateText(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	short := strings.ToValidUTF8(text[:limit-1], "")
	if at := strings.LastIndexByte(short, ' '); at > limit/2 {
		short = short[:at]
	}
	return short + "…"
}

// WordSet returns the set of the words in a text.
func WordSet(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(text) {
		set[w] = true
	}
	return set
}
