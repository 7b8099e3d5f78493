package contact

import (
	"bufio"
	"errors"
	"io"
	"mime/quotedprintable"
	"strings"

	"soniq/internal/platform/op"
)

const (
	maxCard     = 256 << 10 // bytes of a card without pictures
	maxCardLine = 4 << 20   // bytes of one line, which can contain a picture
)

// vcardReader reads vCards of versions 2.1, 3.0 and 4.0 (RFC 2426, RFC 6350), one after the other.
type vcardReader struct {
	from      *bufio.Reader
	line      int
	peeked    string // a line that was read ahead
	hasPeeked bool
}

func newVCardReader(file io.Reader) *vcardReader {
	return &vcardReader{from: bufio.NewReaderSize(toUTF8(file), 64<<10)}
}

// next reads the next card.
func (c *vcardReader) next() (importRecord, error) {
	for {
		line, err := c.readProperty()
		if err != nil {
			return importRecord{}, err
		}
		if strings.EqualFold(strings.TrimSpace(line), "BEGIN:VCARD") {
			return c.readCard()
		}
	}
}

func (c *vcardReader) readCard() (importRecord, error) {
	r, size := importRecord{line: c.line}, 0
	for {
		line, err := c.readProperty()
		if errors.Is(err, io.EOF) {
			r.violations = []op.Violation{op.Field("END", "required", "the card does not end")}
			return r, nil
		}
		if err != nil {
			return r, err
		}
		if strings.EqualFold(strings.TrimSpace(line), "END:VCARD") {
			return r, nil
		}
		if size += len(line); size > maxCard {
			r.violations = []op.Violation{op.Field("card", "invalid_length", "a card may have 256 kB")}
			continue
		}
		r.addProperty(line)
	}
}

// readProperty reads an unfolded property: a line and its continuation lines (RFC 6350 §3.2).
func (c *vcardReader) readProperty() (string, error) {
	line, err := c.readLine()
	if err != nil {
		return "", err
	}
	quoted := strings.Contains(strings.ToUpper(beforeColon(line)), "QUOTED-PRINTABLE")
	var whole strings.Builder
	whole.WriteString(line)
	for {
		next, err := c.readLine()
		if err != nil {
			return whole.String(), nil
		}
		switch {
		case strings.HasPrefix(next, " "), strings.HasPrefix(next, "\t"):
			next = next[1:]
		case quoted && strings.HasSuffix(whole.String(), "="):
			next = "\r\n" + next
		default:
			c.peeked, c.hasPeeked = next, true
			c.line--
			return whole.String(), nil
		}
		if whole.Len() < maxCard {
			whole.WriteString(next)
		}
	}
}

func beforeColon(line string) string {
	head, _, _ := strings.Cut(line, ":")
	return head
}

// readLine reads one line. Of a very long line, such as a picture, only the beginning is kept.
func (c *vcardReader) readLine() (string, error) {
	if c.line++; c.hasPeeked {
		c.hasPeeked = false
		return c.peeked, nil
	}
	var out []byte
	for n := 0; ; {
		part, more, err := c.from.ReadLine()
		if err != nil {
			return "", err
		}
		if n += len(part); n > maxCardLine {
			return "", errFile
		}
		if len(out) < maxCard {
			out = append(out, part...)
		}
		if !more {
			return string(out), nil
		}
	}
}

// addProperty parses a property and sets its field.
func (r *importRecord) addProperty(line string) {
	head, value, ok := cutProperty(line)
	if !ok {
		return
	}
	parts := strings.Split(head, ";")
	name := strings.ToUpper(parts[0])
	if at := strings.LastIndexByte(name, '.'); at >= 0 { // item1.TEL
		name = name[at+1:]
	}
	params := strings.ToUpper(strings.Join(parts[1:], ";"))
	if strings.Contains(params, "QUOTED-PRINTABLE") {
		if b, err := io.ReadAll(quotedprintable.NewReader(strings.NewReader(value))); err == nil {
			value = string(b)
		}
	}
	r.setProperty(name, params, value)
}

// cutProperty splits a property at its colon. A colon inside quotes belongs to a parameter.
func cutProperty(line string) (head, value string, ok bool) {
	quoted := false
	for i := range len(line) {
		switch line[i] {
		case '"':
			quoted = !quoted
		case ':':
			if !quoted {
				return line[:i], line[i+1:], true
			}
		}
	}
	return "", "", false
}

func (r *importRecord) setProperty(name, params, value string) {
	switch name {
	case "N":
		parts := splitValue(value, ';')
		r.contact.LastName = unescapeText(parts[0])
		if len(parts) > 1 {
			r.contact.FirstName = unescapeText(parts[1])
		}
	case "FN":
		r.setName(unescapeText(value))
	case "ORG":
		r.contact.Company = unescapeText(splitValue(value, ';')[0])
	case "TITLE":
		r.contact.Title = unescapeText(value)
	case "TEL":
		if !strings.Contains(params, "FAX") {
			r.setField("phone:"+vCardLabel(params), strings.TrimPrefix(unescapeText(value), "tel:"))
		}
	case "EMAIL":
		r.setField("email:"+vCardLabel(params), unescapeText(value))
	case "CATEGORIES":
		r.setField("tags", unescapeText(strings.ReplaceAll(value, `\,`, ",")))
	case "UID":
		r.setField("custom.uid", unescapeText(value))
	case "URL":
		r.setField("custom.url", unescapeText(value))
	}
}

func vCardLabel(params string) string {
	for _, l := range []string{"CELL", "HOME", "WORK"} {
		if strings.Contains(params, l) {
			return map[string]string{"CELL": "mobile", "HOME": "home", "WORK": "work"}[l]
		}
	}
	return ""
}

// splitValue splits a structured value. A separator after a backslash is text.
func splitValue(value string, by byte) []string {
	out, from := []string{}, 0
	for i := 0; i < len(value); i++ {
		switch value[i] {
		case '\\':
			i++
		case by:
			out, from = append(out, value[from:i]), i+1
		}
	}
	return append(out, value[from:])
}

// unescapeText removes the backslashes (RFC 6350 §3.4).
func unescapeText(value string) string {
	return strings.TrimSpace(strings.NewReplacer(`\\`, `\`, `\n`, " ", `\N`, " ", `\,`, ",", `\;`, ";", `\:`, ":").Replace(value))
}

// ParseVCard reads one vCard, for connected address books.
func ParseVCard(text string) (Record, bool) {
	r, err := newVCardReader(strings.NewReader(text)).next()
	if err != nil || len(r.violations) > 0 {
		return Record{}, false
	}
	return r.asRecord(), true
}
