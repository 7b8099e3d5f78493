// Package sandbox simulates the outside of an organisation in the sandbox: test numbers with documented behaviour,
// and inbound calls and messages on request.
package sandbox

import "strings"

// prefix is the common prefix of all test numbers.
const prefix = "+120255501"

// testDigits returns the last two digits of a test number, or "" for other numbers.
func test(e164 string) string {
	rest, ok := strings.CutPrefix(e164, prefix)
	if !ok || len(rest) != 2 {
		return ""
	}
	return rest
}
