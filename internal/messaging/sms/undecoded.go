package sms

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

// undecodedScheme begins the URL of an attachment that contains octets itself (RFC 2397).
const undecodedScheme = "data:"

// Undecoded returns an attachment that keeps the octets of a message that cannot be decoded. Its media type marks them.
func Undecoded(octets []byte, mediaType string) Media {
	url := undecodedScheme + strings.ReplaceAll(mediaType, " ", "") + ";base64," + base64.StdEncoding.EncodeToString(octets)
	return Media{URL: url, ContentType: mediaType, SizeBytes: int64(len(octets))}
}

// IsReadable reports whether a text can be stored and sent: it is UTF-8 without U+0000.
func IsReadable(text string) bool {
	return utf8.ValidString(text) && strings.IndexByte(text, 0) < 0
}

// Readable returns a text with U+FFFD for octets that cannot be decoded, and for U+0000.
func Readable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "\ufffd")
}

// PlainText returns a text followed by the URLs of its attachments, for receivers without attachments. Octets that cannot
// be decoded are not sent on: the text is "" if a message has nothing else.
func PlainText(body string, media []Media) string {
	var lines []string
	if body != "" {
		lines = append(lines, body)
	}
	for _, m := range media {
		if !strings.HasPrefix(m.URL, undecodedScheme) {
			lines = append(lines, m.URL)
		}
	}
	return strings.Join(lines, "\n")
}
