package sms

import (
	"strings"
	"unicode/utf16"
)

// Encodings of a message.
const (
	GSM7 = "gsm7"
	UCS2 = "ucs2"
)

// gsmBasic is the alphabet of GSM 03.38 §6.2.1 without the escape; each of its characters takes one septet.
const gsmBasic = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿" +
	"abcdefghijklmnopqrstuvwxyzäöñüà"

// gsmExtension has the characters of the extension table (§6.2.1.1). An escape precedes each, so they take two
// septets.
const gsmExtension = "\f^{}\\[~]|€"

// Capacity of a single message, and of each part of a concatenated one, which also has a header of 6 octets (23.040
// §9.2.3.24).
const (
	maxSeptets, maxSeptetsPerPart = 160, 153
	maxUnits, maxUnitsPerPart     = 70, 67
)

// Segments returns the encoding of a text and its number of segments (messages in the network). The encoding is GSM 7
// bit if the alphabet has all characters, else UCS-2. No character is split between two parts. An empty text is one
// segment.
func Segments(text string) (encoding string, segments int) {
	if sizes, ok := gsmSeptets(text); ok {
		return GSM7, countParts(sizes, maxSeptets, maxSeptetsPerPart)
	}
	var sizes []int
	for _, r := range text {
		sizes = append(sizes, max(1, utf16.RuneLen(r)))
	}
	return UCS2, countParts(sizes, maxUnits, maxUnitsPerPart)
}

// gsmSeptets returns the number of septets of each character; ok is false if the alphabet lacks one.
func gsmSeptets(text string) (sizes []int, ok bool) {
	for _, r := range text {
		switch {
		case strings.ContainsRune(gsmBasic, r):
			sizes = append(sizes, 1)
		case strings.ContainsRune(gsmExtension, r):
			sizes = append(sizes, 2)
		default:
			return nil, false
		}
	}
	return sizes, true
}

func countParts(sizes []int, whole, part int) int {
	all := 0
	for _, n := range sizes {
		all += n
	}
	if all <= whole {
		return 1
	}
	count, room := 1, part
	for _, n := range sizes {
		if n > room {
			count, room = count+1, part
		}
		room -= n
	}
	return count
}
