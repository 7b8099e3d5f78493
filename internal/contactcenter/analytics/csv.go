package analytics

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"soniq/internal/platform/op"
)

// csvResponse returns rows as CSV (RFC 4180). The first row holds the column names.
func csvResponse(rows [][]string) *huma.StreamResponse {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	w.UseCRLF = true
	_ = w.WriteAll(rows) // a buffer does not fail
	return op.TextStream("text/csv; charset=utf-8", b.String())
}

// rows returns a row per group, or per step if there is no grouping.
func (r Report) rows(q callQuery) [][]string {
	names, _ := columns(CallTotals{})
	if len(q.group) == 0 {
		out := [][]string{append([]string{"at"}, names...)}
		for _, p := range r.Series {
			_, values := columns(p.CallTotals)
			out = append(out, append([]string{p.At.String()}, values...))
		}
		return out
	}
	var head []string
	for _, d := range q.group {
		head = append(head, dimensionFields[d])
	}
	out := [][]string{append(head, names...)}
	for _, g := range r.Groups {
		var line []string
		for _, d := range q.group {
			line = append(line, escapeFormula(g.By[dimensionFields[d]]))
		}
		_, values := columns(g.CallTotals)
		out = append(out, append(line, values...))
	}
	return out
}

func (r QueueReport) rows() [][]string { return csvRowsOf(r.Data) }

func (r AgentReport) rows() [][]string { return csvRowsOf(r.Data) }

func csvRowsOf[T any](all []T) [][]string {
	var none T
	names, _ := columns(none)
	out := [][]string{names}
	for _, x := range all {
		_, values := columns(x)
		out = append(out, values)
	}
	return out
}

// columns returns the names and values of the fields of a record.
func columns(record any) (names, values []string) {
	v := reflect.ValueOf(record)
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		f := v.Field(i)
		if f.Kind() == reflect.Pointer {
			if f.IsNil() {
				names, values = append(names, name), append(values, "")
				continue
			}
			f = f.Elem()
		}
		names, values = append(names, name), append(values, escapeFormula(fmt.Sprint(f.Interface())))
	}
	return names, values
}

// escapeFormula prevents spreadsheets from reading a text as a formula.
func escapeFormula(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}
