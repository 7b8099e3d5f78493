package contact

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/emersion/go-vcard"

	"soniq/internal/platform/op"
)

const (
	maxCard     = 256 << 10 // bytes of a card without pictures
	maxCardLine = 4 << 20   // bytes of one line, which can contain a picture
)

// vcardReader splits a file into vCards of versions 2.1, 3.0 and 4.0 (RFC 2426, RFC 6350). It limits the memory of each card.
type vcardReader struct {
	from *bufio.Reader
	line int
	card textDecoder
}

func newVCardReader(file io.Reader) *vcardReader {
	text, decoder := openText(file)
	return &vcardReader{from: bufio.NewReaderSize(text, 64<<10), card: decoder}
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
	r, size, lines := importRecord{line: c.line}, 0, []string{}
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
			r.setCard(DecodeCard(lines))
			return r, nil
		}
		if isPicture(line) {
			continue
		}
		line, ok := c.card.decodeProperty(line)
		if !ok {
			_, name, _, _, _ := cutProperty(line)
			r.violations = append(r.violations, damaged(name))
		}
		if size += len(line); size > maxCard {
			r.violations, lines = []op.Violation{op.Field("card", "invalid_length", "a card may have 256 kB")}, nil
			continue
		}
		lines = append(lines, line)
	}
}

// importedProperties are the properties that an import reads.
var importedProperties = []string{vcard.FieldName, vcard.FieldFormattedName, vcard.FieldOrganization, vcard.FieldTitle,
	vcard.FieldTelephone, vcard.FieldEmail, vcard.FieldCategories, vcard.FieldUID, vcard.FieldURL, vcard.FieldNote, propertyLabel}

// propertyLabel is the label of the properties of a group, as address books of Apple write it.
const propertyLabel = "X-ABLABEL"

// isPicture reports whether a property can be large and is not imported.
func isPicture(line string) bool {
	_, name, _, _, _ := cutProperty(line)
	return name == vcard.FieldPhoto || name == vcard.FieldLogo || name == vcard.FieldSound || name == vcard.FieldKey
}

// readProperty reads a property and its continuation lines: folded lines (RFC 6350 §3.2), and the soft line breaks of
// quoted-printable (vCard 2.1).
func (c *vcardReader) readProperty() (string, error) {
	line, err := c.readLine()
	if err != nil {
		return "", err
	}
	_, _, params, _, _ := cutProperty(line)
	quoted := isQuotedPrintable(params)
	var whole strings.Builder
	whole.WriteString(line)
	for {
		soft := quoted && strings.HasSuffix(line, "=")
		if !soft && !c.folded() {
			return whole.String(), nil
		}
		switch line, err = c.readLine(); {
		case errors.Is(err, io.EOF):
			return whole.String(), nil
		case err != nil:
			return "", err
		case whole.Len() >= maxCard:
		case soft:
			whole.WriteString("\r\n" + line)
		default:
			whole.WriteString(line[1:])
		}
	}
}

// folded reports whether the next line continues the property.
func (c *vcardReader) folded() bool {
	next, err := c.from.Peek(1)
	return err == nil && (next[0] == ' ' || next[0] == '\t')
}

// readLine reads one line. Of a very long line, such as a picture, only the beginning is kept.
func (c *vcardReader) readLine() (string, error) {
	c.line++
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

// setCard sets the fields of a card.
func (r *importRecord) setCard(card vcard.Card) {
	if n := card.Get(vcard.FieldName); n != nil {
		r.contact.LastName, r.contact.FirstName = flat(CardPart(n, 0)), flat(CardPart(n, 1))
	}
	if o := card.Get(vcard.FieldOrganization); o != nil {
		r.contact.Company = flat(CardPart(o, 0))
	}
	labels := groupLabels(card)
	for _, f := range card[vcard.FieldTelephone] {
		if !IsFax(f) && !strings.Contains(labels[f.Group], "fax") {
			r.setField("phone:"+cmp.Or(labels[f.Group], vcardLabel(f)), flat(CardNumber(f)))
		}
	}
	for _, f := range card[vcard.FieldEmail] {
		r.setField("email:"+cmp.Or(labels[f.Group], vcardLabel(f)), flat(CardText(f)))
	}
	r.setNote(card)
	for _, f := range card[vcard.FieldCategories] {
		r.setField("tags", flat(CardText(f)))
	}
	for _, one := range []struct{ property, field string }{{vcard.FieldFormattedName, "name"}, {vcard.FieldTitle, "title"},
		{vcard.FieldUID, "custom.uid"}, {vcard.FieldURL, "custom.url"}} {
		if f := card.Get(one.property); f != nil {
			r.setField(one.field, flat(CardText(f)))
		}
	}
}

// flat returns a text in one line.
func flat(text string) string { return strings.TrimSpace(strings.ReplaceAll(text, "\n", " ")) }

// groupLabels returns the labels of groups, such as item1: in lower case, and without the marks around the names that Apple translates.
func groupLabels(card vcard.Card) map[string]string {
	labels := map[string]string{}
	for _, f := range card[propertyLabel] {
		label := strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(flat(CardText(f)), "_$!<"), ">!$_"))
		if utf8.RuneCountInString(label) <= maxTag && f.Group != "" {
			labels[f.Group] = label
		}
	}
	return labels
}

// setNote adds the notes of a card to its custom members, in parts of the length that a member may have.
func (r *importRecord) setNote(card vcard.Card) {
	var all []string
	for _, f := range card[vcard.FieldNote] {
		if text := CardText(f); text != "" {
			all = append(all, text)
		}
	}
	text := []rune(strings.Join(all, "\n"))
	for i := 0; i*maxValue < len(text); i++ {
		name := "note"
		if i > 0 {
			name = fmt.Sprintf("note %d", i+1)
		}
		r.setField("custom."+name, string(text[i*maxValue:min((i+1)*maxValue, len(text))]))
	}
}

// vcardLabel returns our label for the type of a number or an address.
func vcardLabel(f *vcard.Field) string {
	types := strings.Join(f.Params.Types(), " ")
	for _, l := range []struct{ sign, label string }{{"cell", "mobile"}, {"home", "home"}, {"work", "work"}} {
		if strings.Contains(types, l.sign) {
			return l.label
		}
	}
	return ""
}

// ParseVCard reads one vCard, for connected address books.
func ParseVCard(text string) (Record, bool) {
	r, err := newVCardReader(strings.NewReader(byteOrderMark + text)).next() // the text is Unicode, whatever its properties say
	if err != nil || len(r.violations) > 0 {
		return Record{}, false
	}
	return r.asRecord(), true
}
