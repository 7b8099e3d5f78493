package call

import "strings"

// prefersAsync reports whether a Prefer header contains respond-async (RFC 7240 §4.1).
func prefersAsync(header string) bool {
	for part := range strings.SplitSeq(header, ",") {
		name, _, _ := strings.Cut(part, ";")
		name, _, _ = strings.Cut(name, "=")
		if strings.EqualFold(strings.TrimSpace(name), "respond-async") {
			return true
		}
	}
	return false
}
