// Package sandbox simulates the outside world for sandbox organisations: test numbers with a fixed behaviour, inbound
// test calls and messages, connected systems, and the reset.
package sandbox

import "strings"

// prefix is the prefix of all test numbers.
const prefix = "+120255501"

// testDigits returns the last two digits of a test number, and an empty string for other numbers.
func testDigits(e164 string) string {
	rest, ok := strings.CutPrefix(e164, prefix)
	if !ok || len(rest) != 2 {
		return ""
	}
	return rest
}
