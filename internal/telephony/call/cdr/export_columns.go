package cdr

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"

	"soniq/internal/telephony/call"
)

// allColumns lists the names of all columns: the members of a record, then the flat form, in which a member of a
// nested object is named object.member.
var allColumns = append(columnsOf(reflect.TypeFor[call.CDR](), false), columnsOf(reflect.TypeFor[call.CDR](), true)...)

// flatColumns lists the columns of a CSV file, in which nested objects are split into one column per member.
var flatColumns = columnsOf(reflect.TypeFor[call.CDR](), true)

// columnsOf lists the JSON members of a record in their order. apart splits nested objects.
func columnsOf(t reflect.Type, apart bool) (all []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if !apart || inner.Kind() != reflect.Struct || inner.Field(0).Tag.Get("json") == "" {
			all = append(all, name)
			continue
		}
		for _, c := range columnsOf(inner, false) {
			all = append(all, name+"."+c)
		}
	}
	return all
}

// rowWriter writes records to a file.
type rowWriter interface {
	write(r call.CDR) error
	flush() error
}

func newRowWriter(w io.Writer, format string, columns []string) (rowWriter, error) {
	if format == "jsonl" {
		return &jsonRows{out: json.NewEncoder(w), columns: columns}, nil
	}
	if len(columns) == 0 {
		columns = flatColumns
	}
	t := &csvRows{out: csv.NewWriter(w), columns: columns}
	t.out.UseCRLF = true
	return t, t.out.Write(columns)
}

// jsonRows writes one JSON object per line.
type jsonRows struct {
	out     *json.Encoder
	columns []string
}

func (j *jsonRows) write(r call.CDR) error {
	if len(j.columns) == 0 {
		return j.out.Encode(r)
	}
	all, err := cdrMembers(r)
	if err != nil {
		return err
	}
	some := make(map[string]json.RawMessage, len(j.columns))
	for _, c := range j.columns {
		some[c] = memberValue(all, c)
	}
	return j.out.Encode(some)
}

func (j *jsonRows) flush() error { return nil }

// csvRows writes CSV (RFC 4180).
type csvRows struct {
	out     *csv.Writer
	columns []string
}

func (t *csvRows) write(r call.CDR) error {
	all, err := cdrMembers(r)
	if err != nil {
		return err
	}
	row := make([]string, len(t.columns))
	for i, c := range t.columns {
		row[i] = csvCell(memberValue(all, c))
	}
	return t.out.Write(row)
}

func (t *csvRows) flush() error {
	t.out.Flush()
	return t.out.Error()
}

// cdrMembers returns the JSON members of a record by name.
func cdrMembers(r call.CDR) (all map[string]json.RawMessage, err error) {
	b, err := json.Marshal(r)
	if err == nil {
		err = json.Unmarshal(b, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("write record %s: %w", r.ID, err)
	}
	return all, nil
}

// memberValue returns the value of a column, or null if there is none.
func memberValue(all map[string]json.RawMessage, column string) json.RawMessage {
	name, rest, inside := strings.Cut(column, ".")
	v := all[name]
	if inside {
		var inner map[string]json.RawMessage
		_ = json.Unmarshal(v, &inner) // null has no members
		v = inner[rest]
	}
	if v == nil {
		return json.RawMessage("null")
	}
	return v
}

// csvCell returns a value as CSV text: strings unquoted, null as the empty string, everything else as JSON. A text
// that a spreadsheet would run as a formula gets an apostrophe in front; phone numbers such as +1202 do not.
func csvCell(v json.RawMessage) string {
	if string(v) == "null" {
		return ""
	}
	var text string
	if json.Unmarshal(v, &text) != nil {
		return string(v)
	}
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) && strings.Trim(text, "+0123456789") != "" {
		return "'" + text
	}
	return text
}
