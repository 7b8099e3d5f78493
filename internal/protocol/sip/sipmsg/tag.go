package sipmsg

import (
	"math/rand/v2"
	"strconv"
)

// Identifiers of ours: tags, Call-IDs, branches.

// NewTag returns a new From or To tag.
func NewTag() string { return string(AppendHex(nil, rand.Uint64())) }

// NewCallID returns a new Call-ID.
func NewCallID() string {
	return string(AppendHex(AppendHex(nil, rand.Uint64()), rand.Uint64()))
}

// branchCookie is the prefix of a branch that identifies an RFC 3261 transaction (§8.1.1.7).
const branchCookie = "z9hG4bK"

// AppendBranch writes the value of our branch parameter.
func AppendBranch(b []byte, branch uint64) []byte {
	return AppendHex(append(b, branchCookie...), branch)
}

// AppendHex writes n as 16 hexadecimal digits.
func AppendHex(b []byte, n uint64) []byte {
	const digits = "0123456789abcdef"
	for shift := 60; shift >= 0; shift -= 4 {
		b = append(b, digits[n>>shift&15])
	}
	return b
}

// ParseBranch parses a branch written by AppendBranch.
func ParseBranch(s string) (uint64, bool) {
	if len(s) != len(branchCookie)+16 || s[:len(branchCookie)] != branchCookie {
		return 0, false
	}
	n, err := strconv.ParseUint(s[len(branchCookie):], 16, 64)
	return n, err == nil
}
