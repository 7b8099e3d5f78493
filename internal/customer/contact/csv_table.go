package contact

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

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
	labels   []int    // of the columns: the one that has its label, -1 if none has
	unknown  []string // headings of the columns that are kept as custom text
	skipped  int      // lines in front of those that the reader counts
}

// newTable reads the headings. It fails if none of them is known.
func newTable(file io.Reader) (*csvTable, error) {
	b := bufio.NewReaderSize(toUTF8(file), maxLine)
	head, err := b.Peek(4096)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read the file: %w", err)
	}
	comma, skip := separatorLine(head)
	if skip > 0 {
		_, _ = b.Discard(skip)
	} else {
		comma = separator(head)
	}
	t := &csvTable{reader: csv.NewReader(&lineLimitReader{from: b}), skipped: min(skip, 1)}
	t.reader.Comma, t.reader.LazyQuotes, t.reader.FieldsPerRecord, t.reader.ReuseRecord = comma, true, -1, true
	var first []string
	for range maxPreamble {
		names, err := t.reader.Read()
		if err != nil {
			break
		}
		if len(names) > maxColumns {
			return nil, fmt.Errorf("a table may have %d columns", maxColumns)
		}
		if first == nil {
			first = slices.Clone(names)
		}
		if t.headings, t.unknown = readHeadings(names); t.headings != nil {
			t.labels = labelColumns(names)
			return t, damagedHeading(names)
		}
	}
	if first == nil {
		return nil, errors.New("the first line must be headings such as first_name,last_name,company,phone,email")
	}
	if err := damagedHeading(first); err != nil {
		return nil, err
	}
	return nil, errors.New("no heading is known; use headings such as first_name, last_name, name, company, title, phone, mobile, email, tags")
}

// maxPreamble is the number of lines among which the headings are found. Some exports have notes in front of them.
const maxPreamble = 8

func damagedHeading(names []string) error {
	for i, name := range names {
		if isDamaged(name) {
			return fmt.Errorf("the heading of column %d cannot be decoded: save the file as UTF-8", i+1)
		}
	}
	return nil
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

// isDamaged reports whether a text contains bytes or characters that could not be decoded. The control characters behind ASCII come from
// bytes that mean nothing in Windows-1252 and similar encodings; U+0085 is a line break of some programs.
func isDamaged(text string) bool {
	return !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool {
		return r == utf8.RuneError || r >= 0x80 && r <= 0x9f && r != 0x85
	})
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

// separators are the characters that separate columns.
var separators = []rune{',', ';', '\t', '|'}

// separator returns the most frequent separator of the first line that has any.
func separator(head []byte) rune {
	for line := range bytes.SplitSeq(head, []byte("\n")) {
		best, most := ',', 0
		for _, c := range separators {
			if n := bytes.Count(line, []byte(string(c))); n > most {
				best, most = c, n
			}
		}
		if most > 0 {
			return best
		}
	}
	return ','
}

// separatorLine returns the separator that a first line such as sep=; names, and the length of the line; 0 if there is none.
func separatorLine(head []byte) (comma rune, length int) {
	line, _, found := bytes.Cut(head, []byte("\n"))
	text := strings.Trim(strings.TrimSpace(strings.ReplaceAll(string(line), "\t", "tab")), `"`)
	name, value, ok := strings.Cut(text, "=")
	if !found || !ok || !strings.EqualFold(strings.TrimSpace(name), "sep") {
		return 0, 0
	}
	for _, c := range separators {
		if value == string(c) || value == "tab" && c == '\t' {
			return c, len(line) + 1
		}
	}
	return 0, 0
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
			r.setField(t.meaning(i, cells), strings.TrimSpace(cell))
		}
		return r, nil
	}
}

// meaning returns the field of a cell: that of its column, with the label that another cell of the line has.
func (t *csvTable) meaning(column int, cells []string) string {
	at := t.labels[column]
	if at < 0 || at >= len(cells) {
		return t.headings[column]
	}
	return withLabel(t.headings[column], cells[at])
}

func (t *csvTable) line() int {
	line, _ := t.reader.FieldPos(0)
	return line + t.skipped
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
	case "family_or_name":
		r.contact.LastName = strings.TrimPrefix(text, r.contact.FirstName+" ")
	case "company":
		r.contact.Company = text
	case "title":
		r.contact.Title = text
	case "phone?": // a heading such as Business, which is a number only if its content is one
		label, name, _ := strings.Cut(label, ":")
		if isPhoneText(text) {
			r.setField("phone:"+label, text)
		} else {
			r.setField("custom."+name, text)
		}
	case "phone":
		for _, one := range splitCell(text, isWholeNumber) {
			r.contact.Phones = append(r.contact.Phones, Phone{Number: one, Label: label})
		}
	case "email":
		for _, one := range splitCell(text, isAddress) {
			r.contact.Emails = append(r.contact.Emails, Email{Value: one, Label: label})
		}
	case "tags":
		r.contact.Tags = append(r.contact.Tags, strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(",;|", c) })...)
	case labelColumn: // read with its value
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

// splitCell splits a cell into the values that exports and people combine. Separators that a single value can have, count only if all
// parts are values.
func splitCell(text string, isValue func(string) bool) (all []string) {
	for one := range strings.SplitSeq(strings.ReplaceAll(text, " ::: ", "\n"), "\n") {
		parts := strings.FieldsFunc(one, func(c rune) bool { return strings.ContainsRune(";,|/", c) })
		if slices.ContainsFunc(parts, func(part string) bool { return !isValue(strings.TrimSpace(part)) }) {
			parts = []string{one}
		}
		for _, part := range parts {
			if part = strings.TrimSpace(part); part != "" {
				all = append(all, part)
			}
		}
	}
	return all
}

// isWholeNumber reports whether a text can be a number by itself, neither an area code before a slash nor an extension.
func isWholeNumber(text string) bool { return len(digitsOf(text)) >= 7 && isPhoneText(text) }

func isAddress(text string) bool {
	return strings.Count(text, "@") == 1 && !strings.Contains(text, " ")
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
