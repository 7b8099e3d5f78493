package smscarrier

import (
	"encoding/json"
	"strings"

	"soniq/internal/platform/strictjson"
)

// damagedMark begins a text of a callback that is not Unicode. The octets of the text follow.
const damagedMark = "\x00damaged:"

// keepDamaged returns a JSON document whose texts that are not Unicode have damagedMark and their octets, in which each
// octet is one character. A decoder would change them.
func keepDamaged(document []byte) []byte {
	return strictjson.ReplaceDamaged(document, func(raw []byte) []byte {
		octets := raw[1 : len(raw)-1]
		runes := make([]rune, len(octets))
		for i, b := range octets {
			runes[i] = rune(b)
		}
		text, _ := json.Marshal(damagedMark + string(runes))
		return text
	})
}

// damagedOctets returns the octets of a text of keepDamaged, with the escapes of JSON. ok is false for other texts.
func damagedOctets(text string) (octets []byte, ok bool) {
	rest, ok := strings.CutPrefix(text, damagedMark)
	if !ok {
		return nil, false
	}
	for _, r := range rest {
		octets = append(octets, byte(r))
	}
	return octets, true
}

// undamaged returns a text, or "" for one of keepDamaged.
func undamaged(text string) string {
	if strings.HasPrefix(text, damagedMark) {
		return ""
	}
	return text
}
