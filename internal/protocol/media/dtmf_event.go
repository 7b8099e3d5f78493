package media

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// ErrNoEvents is returned by SendDTMF if the other side did not negotiate telephone-event.
var ErrNoEvents = errors.New("the other side takes no telephone-event")

// dtmfDigits lists the digits in the order of their event codes (RFC 4733 §3.2).
const dtmfDigits = "0123456789*#ABCD"

func eventDigit(code byte) (rune, bool) {
	if int(code) >= len(dtmfDigits) {
		return 0, false
	}
	return rune(dtmfDigits[code]), true
}

func eventCode(digit rune) (byte, error) {
	i := strings.IndexRune(dtmfDigits, digit)
	if i < 0 {
		return 0, fmt.Errorf("%q is not a DTMF digit", digit)
	}
	return byte(i), nil
}

// eventVolume is the power level of events in dBm0 without the sign.
const eventVolume = 10

// putEvent writes the payload of one packet of an event (RFC 4733 §2.3).
func putEvent(b []byte, code byte, samples int, end bool) {
	b[0], b[1] = code, eventVolume
	if end {
		b[1] |= 0x80
	}
	binary.BigEndian.PutUint16(b[2:], uint16(samples))
}
