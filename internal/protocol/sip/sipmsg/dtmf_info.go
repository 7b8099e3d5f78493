package sipmsg

import (
	"strconv"
	"strings"
	"time"
)

// DTMF digits in INFO bodies.

// Content types of digits sent by INFO.
const (
	dtmfRelay = "application/dtmf-relay"
	dtmfPlain = "application/dtmf"
)

// Durations of digits sent by INFO.
const (
	defaultDigitDuration = 250 * time.Millisecond // used if the phone gives none
	maxDigitDuration     = 5 * time.Second
)

// ParseDTMFInfo parses the digit of an INFO body, application/dtmf-relay ("Signal=5" and "Duration=160") or
// application/dtmf ("5"): 0 to 9, A to D, * or #. ok is false if there is none. The duration is at most 5 s.
func ParseDTMFInfo(contentType string, body []byte) (digit rune, duration time.Duration, ok bool) {
	switch {
	case len(body) > 256:
		return 0, 0, false
	case IsType(contentType, dtmfPlain):
		digit, ok = ParseDigit(string(body))
		return digit, defaultDigitDuration, ok
	case IsType(contentType, dtmfRelay):
		return parseDTMFRelay(string(body))
	}
	return 0, 0, false
}

func parseDTMFRelay(body string) (digit rune, duration time.Duration, ok bool) {
	duration = defaultDigitDuration
	for line := range strings.Lines(body) {
		name, value, _ := strings.Cut(line, "=")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "signal":
			digit, ok = ParseDigit(value)
		case "duration":
			if ms, err := strconv.ParseUint(strings.TrimSpace(value), 10, 31); err == nil && ms > 0 {
				duration = min(time.Duration(ms)*time.Millisecond, maxDigitDuration)
			}
		}
	}
	return digit, duration, ok
}

// ParseDigit parses a digit. Some phones send 10 for * and 11 for #, or the event numbers of A to D (RFC 4733 §3.2).
func ParseDigit(s string) (rune, bool) {
	const digits = "0123456789*#ABCD"
	s = strings.ToUpper(strings.TrimSpace(s))
	if len(s) == 1 && strings.Contains(digits, s) {
		return rune(s[0]), true
	}
	n, err := strconv.ParseUint(s, 10, 8)
	if len(s) != 2 || err != nil || n < 10 || n > 15 {
		return 0, false
	}
	return rune(digits[n]), true
}

// DTMFInfo returns an INFO body that sends a digit, as application/dtmf-relay.
func DTMFInfo(digit rune, duration time.Duration) (contentType string, body []byte) {
	if duration <= 0 {
		duration = defaultDigitDuration
	}
	b := append([]byte("Signal="), string(digit)...)
	b = AppendInt(append(b, "\r\nDuration="...), min(duration, maxDigitDuration).Milliseconds())
	return dtmfRelay, append(b, "\r\n"...)
}
