package contact

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"soniq/internal/platform/op"
)

const (
	maxColumns = 200
	maxLine    = 256 << 10 // bytes of one line of a table
)

// csvTable is a CSV file with a line of headings (RFC 4180), separated by commas, semicolons or tabs, in UTF-8,
// UTF-16 or Windows-1252.
type csvTable struct {
	reader   *csv.Reader
	headings []string // meaning of the columns: a field of contacts, or custom.<heading>
}

// newTable reads the headings. It fails if none of them is known.
func newTable(file io.Reader) (*csvTable, error) {
	b := bufio.NewReaderSize(toUTF8(file), maxLine)
	head, err := b.Peek(4096)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read the file: %w", err)
	}
	t := &csvTable{reader: csv.NewReader(&lineLimitReader{from: b})}
	t.reader.Comma, t.reader.LazyQuotes, t.reader.FieldsPerRecord, t.reader.ReuseRecord = separator(head), true, -1, true
	names, err := t.reader.Read()
	if err != nil {
		return nil, errors.New("the first line must be headings such as first_name,last_name,company,phone,email")
	}
	if len(names) > maxColumns {
		return nil, fmt.Errorf("a table may have %d columns", maxColumns)
	}
	known := false
	for i, name := range names {
		if isDamaged(name) {
			return nil, fmt.Errorf("the heading of column %d cannot be decoded: save the file as UTF-8", i+1)
		}
		h := heading(name)
		known = known || h != "" && !strings.HasPrefix(h, "custom.")
		t.headings = append(t.headings, h)
	}
	if !known {
		return nil, errors.New("no heading is known; use headings such as first_name, last_name, name, company, title, phone, mobile, email, tags")
	}
	return t, nil
}

// lineLimitReader fails on lines longer than maxLine, so that a file cannot exhaust the memory.
type lineLimitReader struct {
	from   io.Reader
	length int
}

// Read reads from the file. It fails if a line exceeds maxLine.
func (l *lineLimitReader) Read(p []byte) (int, error) {
	n, err := l.from.Read(p)
	for _, c := range p[:n] {
		if l.length++; c == '\n' {
			l.length = 0
		}
		if l.length > maxLine {
			return 0, fmt.Errorf("%w: a line is longer than %d bytes", errFile, maxLine)
		}
	}
	return n, err
}

// toUTF8 converts a file to UTF-8 from any of the supported encodings.
func toUTF8(file io.Reader) io.Reader {
	b := bufio.NewReaderSize(file, 64<<10)
	head, _ := b.Peek(32 << 10)
	switch {
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}), bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		return transform.NewReader(b, unicode.BOMOverride(transform.Nop))
	case bytes.HasPrefix(head, []byte("\ufeff")):
		_, _ = b.Discard(3)
		return b
	}
	if isWindows1252(head) {
		return charmap.Windows1252.NewDecoder().Reader(b)
	}
	return b
}

// isWindows1252 reports whether the beginning of a file has bytes outside ASCII, and none of them form a character in
// UTF-8. A file with both is damaged UTF-8: in Windows-1252 all its names would change.
func isWindows1252(head []byte) bool {
	other := false
	for len(head) > 0 {
		r, size := utf8.DecodeRune(head)
		switch {
		case r == utf8.RuneError && size == 1 && !utf8.FullRune(head): // cut off
			return other
		case r == utf8.RuneError && size == 1:
			other = true
		case size > 1:
			return false
		}
		head = head[size:]
	}
	return other
}

// isDamaged reports whether a text contains bytes or characters that could not be decoded.
func isDamaged(text string) bool {
	return !utf8.ValidString(text) || strings.ContainsRune(text, utf8.RuneError)
}

func damaged(field string) op.Violation {
	return op.Field(fieldOfHeading(field), "invalid_encoding", "contains characters that cannot be decoded")
}

// fieldOfHeading returns the name of a column for errors, without the label of a number or an address.
func fieldOfHeading(heading string) string {
	if heading == "" {
		return "line"
	}
	name, _, _ := strings.Cut(heading, ":")
	return name
}

// separator returns the most frequent separator of the first line.
func separator(head []byte) rune {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	best, most := ',', bytes.Count(line, []byte(","))
	for _, c := range []rune{';', '\t'} {
		if n := bytes.Count(line, []byte(string(c))); n > most {
			best, most = c, n
		}
	}
	return best
}

// headings maps the column names of other systems' exports, without spaces and punctuation, to fields.
var headings = map[string]string{
	"firstname": "first_name", "givenname": "first_name", "vorname": "first_name", "forename": "first_name",
	"lastname": "last_name", "familyname": "last_name", "surname": "last_name", "nachname": "last_name",
	"name": "name", "fullname": "name", "displayname": "name", "contactname": "name", "contact": "name",
	"company": "company", "companyname": "company", "organization": "company", "organisation": "company", "organizationname": "company",
	"account": "company", "accountname": "company", "firma": "company", "organization1name": "company", "associatedcompany": "company",
	"title": "title", "jobtitle": "title", "position": "title", "organization1title": "title",
	"tags": "tags", "labels": "tags", "categories": "tags", "groups": "tags", "groupmembership": "tags", "vip": "vip",
	"donotcall": "do_not_call", "dnc": "do_not_call",
}

// heading returns the field of a column; "" if the column is ignored.
func heading(name string) string {
	name = normalizeText(name)
	plain := strings.Map(func(r rune) rune {
		if strings.ContainsRune(" _-./()", r) {
			return -1
		}
		return r
	}, strings.ToLower(name))
	for _, end := range []struct{ sign, means string }{{"phone", "phone:work"}, {"telephone", "phone:work"}, {"mobile", "phone:mobile"},
		{"cell", "phone:mobile"}, {"fax", ""}, {"email", "email"}, {"mail", "email"}} {
		if strings.HasSuffix(strings.TrimRight(strings.TrimSuffix(strings.TrimSuffix(plain, "value"), "number"), "0123456789"), end.sign) {
			return withLabel(end.means, plain)
		}
	}
	if h, ok := headings[plain]; ok {
		return h
	}
	if plain == "" || len(name) > maxName {
		return ""
	}
	return "custom." + name
}

// withLabel refines the label of a number or an address from the heading.
func withLabel(means, plain string) string {
	kind, _, _ := strings.Cut(means, ":")
	if kind == "" {
		return ""
	}
	for _, label := range []string{"mobile", "home", "work", "business", "private"} {
		if strings.Contains(plain, label) {
			return kind + ":" + label
		}
	}
	if strings.Contains(plain, "cell") {
		return kind + ":mobile"
	}
	return means
}

// next reads the next line that is not empty.
func (t *csvTable) next() (importRecord, error) {
	for {
		cells, err := t.reader.Read()
		var line *csv.ParseError
		if err != nil && !errors.As(err, &line) ||
			errors.Is(err, errFile) { // a read error or a malformed file ends the import; a malformed line does not
			return importRecord{}, err
		}
		r := importRecord{line: t.line()}
		if err != nil {
			r.violations = []op.Violation{op.Field("line", "unreadable", "not a line of a table")}
			return r, nil
		}
		if isBlank(cells) {
			continue
		}
		if len(cells) > len(t.headings) && !isBlank(cells[len(t.headings):]) {
			r.violations = []op.Violation{op.Field("line", "too_many", fmt.Sprintf("has %d cells, the headings are %d", len(cells),
				len(t.headings)))}
			return r, nil
		}
		for i, cell := range cells[:min(len(cells), len(t.headings))] {
			if t.headings[i] != "" && isDamaged(cell) {
				r.violations = append(r.violations, damaged(t.headings[i]))
				continue
			}
			r.setField(t.headings[i], strings.TrimSpace(cell))
		}
		return r, nil
	}
}

func (t *csvTable) line() int {
	line, _ := t.reader.FieldPos(0)
	return line
}

func isBlank(cells []string) bool {
	for _, c := range cells {
		if strings.TrimSpace(c) != "" {
			return false
		}
	}
	return true
}

// setField sets the field of one cell.
func (r *importRecord) setField(heading, text string) {
	if text == "" || heading == "" {
		return
	}
	kind, label, _ := strings.Cut(heading, ":")
	switch kind {
	case "first_name":
		r.contact.FirstName = text
	case "last_name":
		r.contact.LastName = text
	case "name":
		r.setName(text)
	case "company":
		r.contact.Company = text
	case "title":
		r.contact.Title = text
	case "phone":
		for _, one := range splitCell(text) {
			r.contact.Phones = append(r.contact.Phones, Phone{Number: one, Label: label})
		}
	case "email":
		for _, one := range splitCell(text) {
			r.contact.Emails = append(r.contact.Emails, Email{Value: one, Label: label})
		}
	case "tags":
		r.contact.Tags = append(r.contact.Tags, strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(",;|", c) })...)
	case "vip":
		r.contact.VIP = isTrue(text)
	case "do_not_call":
		r.contact.DoNotCall = isTrue(text)
	default:
		if r.contact.Custom == nil {
			r.contact.Custom = map[string]string{}
		}
		r.contact.Custom[strings.TrimPrefix(heading, "custom.")] = text
	}
}

// splitCell splits a cell into the values that exports combine.
func splitCell(text string) (all []string) {
	for one := range strings.SplitSeq(strings.ReplaceAll(text, " ::: ", "\n"), "\n") {
		if one = strings.TrimSpace(one); one != "" {
			all = append(all, one)
		}
	}
	return all
}

// setName splits a full name into first and last name, unless they are set.
func (r *importRecord) setName(text string) {
	if r.contact.FirstName != "" || r.contact.LastName != "" {
		return
	}
	if last, first, ok := strings.Cut(text, ","); ok && !strings.Contains(first, ",") {
		r.contact.FirstName, r.contact.LastName = strings.TrimSpace(first), strings.TrimSpace(last)
		return
	}
	if at := strings.LastIndexByte(text, ' '); at > 0 {
		r.contact.FirstName, r.contact.LastName = text[:at], text[at+1:]
		return
	}
	r.contact.FirstName = text
}

func isTrue(text string) bool {
	switch strings.ToLower(text) {
	case "1", "true", "yes", "y", "x", "ja", "oui":
		return true
	}
	return false
}

// NewTable reads a CSV file as records, for connections to CSV files. Malformed lines are skipped.
func NewTable(file io.Reader) (func() (Record, int, error), error) {
	t, err := newTable(file)
	if err != nil {
		return nil, err
	}
	return func() (Record, int, error) {
		for {
			r, err := t.next()
			if err != nil {
				return Record{}, 0, err
			}
			if len(r.violations) == 0 {
				return r.asRecord(), r.line, nil
			}
		}
	}, nil
}

// asRecord converts a contact of a file to a record of a connected system. Its id is taken from the file, if it has
// one.
func (r importRecord) asRecord() Record {
	r.contact.complete()
	out := Record{Name: r.contact.Name, Company: r.contact.Company, Title: r.contact.Title}
	for _, p := range r.contact.Phones {
		out.Phones = append(out.Phones, p.Number)
	}
	if len(r.contact.Emails) > 0 {
		out.Email = r.contact.Emails[0].Value
		for _, e := range r.contact.Emails[1:] {
			out.Emails = append(out.Emails, e.Value)
		}
	}
	for name, value := range r.contact.Custom {
		switch strings.ToLower(name) {
		case "id", "external_id", "contact id", "record id", "uid":
			out.ExternalID = value
		case "url", "link":
			out.URL = value
		}
	}
	return out
}
