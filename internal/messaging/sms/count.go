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

// basic is the alphabet of GSM 03.38 §6.2.1 without the escape; each of its characters takes one septet.
const basic = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿" +
	"abcdefghijklmnopqrstuvwxyzäöñüà"

// extended are the characters of the extension table (§6.2.1.1): an escape goes before each, so they take two septets.
const extended = "\f^{}\\[~]|€"

// What fits into a message by itself, and into each part of a longer one beside the header that joins the parts (23.040 §9.2.3.24).
const (
	septets, septetsOfPart = 160, 153
	units, unitsOfPart     = 70, 67
)

// Segments tells how a text is encoded and of how many messages of the network it consists: GSM 7 bit where the alphabet
// has all of its characters, else UCS-2. No character is split between two parts. A text of no characters is one message.
func Segments(text string) (encoding string, segments int) {
	if sizes, ok := gsm(text); ok {
		return GSM7, parts(sizes, septets, septetsOfPart)
	}
	var sizes []int
	for _, r := range text {
		sizes = append(sizes, max(1, utf16.RuneLen(r)))
	}
	return UCS2, parts(sizes, units, unitsOfPart)
}

// gsm is how many septets each character takes; ok is false where the alphabet lacks one.
func gsm(text string) (sizes []int, ok bool) {
	for _, r := range text {
		switch {
		case strings.ContainsRune(basic, r):
			sizes = append(sizes, 1)
		case strings.ContainsRune(extended, r):
			sizes = append(sizes, 2)
		default:
			return nil, false
		}
	}
	return sizes, true
}

func parts(sizes []int, whole, part int) int {
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
