// Package placeholder fills {{name}} in the addresses, bodies and texts that customers write for requests to their systems.
package placeholder

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

var pattern = regexp.MustCompile(`\{\{\s*([a-z0-9_]+)\s*\}\}`)

// Fill replaces the placeholders of a template by their values, which escape encodes for their place. A placeholder without a value becomes
// the encoded empty text.
func Fill(template string, values map[string]string, escape func(string) string) string {
	return pattern.ReplaceAllStringFunc(template, func(found string) string {
		return escape(values[pattern.FindStringSubmatch(found)[1]])
	})
}

// EscapeURL encodes a value for any part of an address.
func EscapeURL(value string) string { return strings.ReplaceAll(url.QueryEscape(value), "+", "%20") }

// Verbatim returns the value, for places that need no encoding.
func Verbatim(value string) string { return value }

// FillJSON replaces the placeholders in the texts of a JSON value. It returns a copy.
func FillJSON(body any, values map[string]string) any {
	switch x := body.(type) {
	case string:
		return Fill(x, values, Verbatim)
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = FillJSON(x[i], values)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(x))
		for name, v := range x {
			out[name] = FillJSON(v, values)
		}
		return out
	}
	return body
}

// Names returns the names of the placeholders in a text or in the texts of a JSON value, each as often as it is used.
func Names(template any) (all []string) {
	switch x := template.(type) {
	case string:
		for _, m := range pattern.FindAllStringSubmatch(x, -1) {
			all = append(all, m[1])
		}
	case []any:
		for _, v := range x {
			all = append(all, Names(v)...)
		}
	case map[string]any:
		for _, v := range x {
			all = append(all, Names(v)...)
		}
	}
	return all
}

// Check returns an error with the first placeholder whose name is not known.
func Check(template any, known []string) error {
	for _, n := range Names(template) {
		if !slices.Contains(known, n) {
			return fmt.Errorf("{{%s}} means nothing here; known are %s", n, strings.Join(known, ", "))
		}
	}
	return nil
}
