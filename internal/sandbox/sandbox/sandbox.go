// Package sandbox is the world around organisations in the sandbox: numbers that behave as their list says, and callers and
// writers who come in when they are asked to.
package sandbox

import "strings"

// prefix is what all test numbers begin with.
const prefix = "+120255501"

// test is the last two digits of a test number; "" of any other.
func test(e164 string) string {
	rest, ok := strings.CutPrefix(e164, prefix)
	if !ok || len(rest) != 2 {
		return ""
	}
	return rest
}
