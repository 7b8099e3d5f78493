package number

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"soniq/internal/platform/op"
)

// tableColumns lists the allowed headings of a CSV file, in any order.
var tableColumns = []string{"number", "label", "trunk_id", "user", "user_id", "flow_id", "queue_id", "sms_enabled", "emergency_address"}

// readTable reads a CSV file (RFC 4180) with a line of headings. Columns are separated by commas, semicolons or tabs.
// Lines without a trunk get the given one.
func readTable(file []byte, trunk string) (all []importLine, wrong []op.Violation) {
	file = bytes.TrimPrefix(file, []byte("\ufeff"))
	if !utf8.Valid(file) {
		return nil, []op.Violation{op.Field("body", "unreadable", "must be UTF-8")}
	}
	r := csv.NewReader(bytes.NewReader(file))
	r.Comma, r.FieldsPerRecord, r.TrimLeadingSpace = separator(file), -1, true
	names, err := r.Read()
	if err != nil {
		return nil, []op.Violation{op.Field("body", "unreadable", "the first line must be headings: "+strings.Join(tableColumns, ", "))}
	}
	names, wrong = parseHeadings(names)
	for {
		cells, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return all, append(wrong, op.Field("body", "unreadable", err.Error()))
		}
		at, _ := r.FieldPos(0)
		l, bad := parseLine(at, names, cells)
		if l.TrunkID == "" {
			l.TrunkID = trunk
		}
		all, wrong = append(all, l), append(wrong, bad...)
		if len(all) > maxImport {
			return nil, []op.Violation{op.Field("body", "out_of_range", fmt.Sprintf("at most %d numbers at once", maxImport))}
		}
	}
	if len(all) == 0 && len(wrong) == 0 {
		wrong = append(wrong, op.Field("body", "required", "there are no numbers below the headings"))
	}
	return all, wrong
}

// separator returns the separator that is most frequent in the first line.
func separator(file []byte) rune {
	first, _, _ := bytes.Cut(file, []byte("\n"))
	best, most := ',', bytes.Count(first, []byte(","))
	for _, c := range []rune{';', '\t'} {
		if n := bytes.Count(first, []byte(string(c))); n > most {
			best, most = c, n
		}
	}
	return best
}

func parseHeadings(names []string) (known []string, wrong []op.Violation) {
	for _, n := range names {
		n = strings.ToLower(strings.TrimSpace(n))
		if r := []rune(n); len(r) > 80 {
			n = string(r[:80])
		}
		switch {
		case !slices.Contains(tableColumns, n):
			wrong = append(wrong, op.Field("lines[1]."+n, "unknown_field", "no such column; there are "+strings.Join(tableColumns, ", ")))
		case slices.Contains(known, n):
			wrong = append(wrong, op.Field("lines[1]."+n, "duplicate", "the column is there twice"))
		}
		known = append(known, n)
	}
	if !slices.Contains(known, "number") {
		wrong = append(wrong, op.Field("lines[1].number", "required", "there must be a column with this heading"))
	}
	return known, wrong
}

func parseLine(at int, names, cells []string) (l importLine, wrong []op.Violation) {
	l.position = fmt.Sprintf("lines[%d]", at)
	to := map[string]*string{"number": &l.Number, "label": &l.Label, "trunk_id": &l.TrunkID, "user": &l.userRef, "user_id": &l.UserID,
		"flow_id": &l.FlowID, "queue_id": &l.QueueID, "emergency_address": &l.Emergency.Address}
	for i, cell := range cells {
		cell = strings.TrimSpace(cell)
		if i >= len(names) {
			return l, append(wrong, op.Field(l.position, "unknown_field", "has more columns than there are headings"))
		}
		if p := to[names[i]]; p != nil {
			*p = cell
		}
		if names[i] == "sms_enabled" && cell != "" {
			on, err := strconv.ParseBool(strings.ToLower(cell))
			if l.SMSEnabled = on; err != nil {
				wrong = append(wrong, op.Field(l.position+".sms_enabled", "invalid_value", "must be true or false"))
			}
		}
	}
	return l, wrong
}
