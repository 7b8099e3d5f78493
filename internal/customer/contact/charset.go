package contact

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// Character encodings of files, and of properties of vCards.

const byteOrderMark = "\ufeff"

// textDecoder decodes the properties of vCards.
type textDecoder struct {
	unicode     bool // the file has a byte order mark: its properties are Unicode, whatever they say
	windows1252 bool // properties that name no encoding are in Windows-1252
}

// openText returns a file with the lines of Unix. It is in UTF-8 if it has a byte order mark or is in UTF-16; otherwise its properties
// are decoded one by one.
func openText(file io.Reader) (io.Reader, textDecoder) {
	b := bufio.NewReaderSize(file, 64<<10)
	head, _ := b.Peek(32 << 10)
	if order, found := utf16Order(head); found {
		return newLineReader(transform.NewReader(b, order.NewDecoder())), textDecoder{unicode: true}
	}
	if bytes.HasPrefix(head, []byte(byteOrderMark)) {
		_, _ = b.Discard(len(byteOrderMark))
		return newLineReader(b), textDecoder{unicode: true}
	}
	return newLineReader(b), textDecoder{windows1252: isWindows1252(head)}
}

// toUTF8 converts a file to UTF-8 from any of the supported encodings.
func toUTF8(file io.Reader) io.Reader {
	text, decoder := openText(file)
	if decoder.windows1252 {
		return charmap.Windows1252.NewDecoder().Reader(text)
	}
	return text
}

// utf16Order recognises UTF-16 by its byte order mark, or by the zero bytes of characters of ASCII.
func utf16Order(head []byte) (encoding.Encoding, bool) {
	if bytes.HasPrefix(head, []byte{0xff, 0xfe}) || bytes.HasPrefix(head, []byte{0xfe, 0xff}) {
		return unicode.UTF16(unicode.BigEndian, unicode.ExpectBOM), true
	}
	zeros := [2]int{}
	for i, c := range head {
		if c == 0 {
			zeros[i%2]++
		}
	}
	switch half := len(head) / 2; {
	case half >= 2 && zeros[1] > half*2/3 && zeros[0] == 0:
		return unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), true
	case half >= 2 && zeros[0] > half*2/3 && zeros[1] == 0:
		return unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), true
	}
	return nil, false
}

// lineReader converts the line ends of old programs, which are carriage returns, to line feeds.
type lineReader struct {
	from     io.Reader
	carriage bool // the last byte was a carriage return
}

func newLineReader(from io.Reader) io.Reader { return &lineReader{from: from} }

// Read reads from the file. A carriage return becomes a line feed, and a line feed behind it is dropped.
func (l *lineReader) Read(p []byte) (int, error) {
	for {
		n, err := l.from.Read(p)
		kept := p[:0]
		for _, c := range p[:n] {
			after := l.carriage
			if l.carriage = c == '\r'; l.carriage {
				c = '\n'
			} else if c == '\n' && after {
				continue
			}
			kept = append(kept, c)
		}
		if len(kept) > 0 || err != nil || n == 0 {
			return len(kept), err
		}
	}
}

// decodeProperty returns a property of a vCard in UTF-8, without its parameters of encodings. ok is false if the property is imported
// and its text cannot be decoded; it is then returned unchanged.
func (d textDecoder) decodeProperty(line string) (decoded string, ok bool) {
	group, name, params, value, found := cutProperty(line)
	if !found || !slices.Contains(importedProperties, name) {
		return line, true
	}
	text, ok := d.decode(params, value)
	if !ok || isDamaged(text) {
		return line, false
	}
	if group != "" {
		name = group + "." + name
	}
	for param := range strings.SplitSeq(params, ";") {
		if param != "" && !isEncodingParam(param) {
			name += ";" + param
		}
	}
	return name + ":" + text, true
}

func (d textDecoder) decode(params, value string) (string, bool) {
	charset := charsetOf(params)
	switch {
	case isQuotedPrintable(params):
		return decodedValue(params, value)
	case isBase64(params):
		b, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(value), ""))
		if err != nil {
			return "", false
		}
		return decodeCharset(charset, string(b))
	case d.unicode:
		return value, true
	case charset == "" && d.windows1252:
		return decodeCharset("windows-1252", value)
	}
	return decodeCharset(charset, value)
}

// isEncodingParam reports whether a parameter describes the encoding of a value.
func isEncodingParam(param string) bool {
	name, _, named := strings.Cut(param, "=")
	name = strings.ToUpper(strings.TrimSpace(name))
	if !named {
		return slices.Contains([]string{"QUOTED-PRINTABLE", "BASE64", "8BIT", "7BIT", "B"}, name)
	}
	return name == "CHARSET" || name == "ENCODING"
}

// isBase64 reports whether a value is in base64, which is "b" in version 3.0.
func isBase64(params string) bool {
	for param := range strings.SplitSeq(strings.ToUpper(params), ";") {
		name, value, named := strings.Cut(param, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !named && name == "BASE64" || name == "ENCODING" && (value == "B" || value == "BASE64") {
			return true
		}
	}
	return false
}

// decodeCharset decodes a text from a character encoding; "" is UTF-8. ok is false for an unknown encoding, and for bytes that mean
// nothing in it.
func decodeCharset(charset, value string) (text string, ok bool) {
	if charset == "" || strings.EqualFold(charset, "utf-8") || strings.EqualFold(charset, "utf8") {
		return value, utf8.ValidString(value)
	}
	e, err := htmlindex.Get(charset)
	if err != nil {
		if e, err = ianaindex.IANA.Encoding(charset); err != nil || e == nil {
			return "", false
		}
	}
	text, err = e.NewDecoder().String(value)
	return text, err == nil && !isDamaged(text)
}
