package smscarrier

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// placeholder matches {{name}} in a URL or a body.
var placeholder = regexp.MustCompile(`\{\{\s*([a-z0-9_]+)\s*\}\}`)

// placeholders are the names that a request template may use.
var placeholders = []string{"from", "to", "from_digits", "to_digits", "text", "reference", "callback_url"}

// fillText replaces the placeholders of a template; escape encodes the values.
func fillText(template string, values map[string]string, escape func(string) string) string {
	return placeholder.ReplaceAllStringFunc(template, func(found string) string {
		return escape(values[placeholder.FindStringSubmatch(found)[1]])
	})
}

func noEscape(value string) string { return value }

func escapeURL(value string) string { return strings.ReplaceAll(url.QueryEscape(value), "+", "%20") }

// fillBody replaces the placeholders in the strings of a JSON value.
func fillBody(body any, values map[string]string) any {
	switch x := body.(type) {
	case string:
		return fillText(x, values, noEscape)
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = fillBody(x[i], values)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(x))
		for name, v := range x {
			out[name] = fillBody(v, values)
		}
		return out
	}
	return body
}

// checkPlaceholders returns an error for a placeholder with an unknown name.
func checkPlaceholders(template any) error {
	switch x := template.(type) {
	case string:
		for _, m := range placeholder.FindAllStringSubmatch(x, -1) {
			if !slices.Contains(placeholders, m[1]) {
				return fmt.Errorf("{{%s}} means nothing; known are %s", m[1], strings.Join(placeholders, ", "))
			}
		}
	case []any:
		for _, v := range x {
			if err := checkPlaceholders(v); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, v := range x {
			if err := checkPlaceholders(v); err != nil {
				return err
			}
		}
	}
	return nil
}
