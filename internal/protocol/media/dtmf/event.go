// Package dtmf has the digits of a telephone: as RFC 4733 events, as tones (ITU-T Q.23), and their detection in audio
// (ITU-T Q.24).
package dtmf

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Digits lists the digits in the order of their event codes (RFC 4733 §3.2).
const Digits = "0123456789*#ABCD"

// Digit returns the digit of an event code, or false if the event is not a digit.
func Digit(code byte) (rune, bool) {
	if int(code) >= len(Digits) {
		return 0, false
	}
	return rune(Digits[code]), true
}

// Code returns the event code of a digit.
func Code(digit rune) (byte, error) {
	i := strings.IndexRune(Digits, digit)
	if i < 0 {
		return 0, fmt.Errorf("%q is not a DTMF digit", digit)
	}
	return byte(i), nil
}

// eventVolume is the power level of events in dBm0 without the sign.
const eventVolume = 10

// PutEvent writes the payload of one packet of an event (RFC 4733 §2.3).
func PutEvent(b []byte, code byte, samples int, end bool) {
	b[0], b[1] = code, eventVolume
	if end {
		b[1] |= 0x80
	}
	binary.BigEndian.PutUint16(b[2:], uint16(samples))
}
