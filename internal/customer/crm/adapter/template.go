package adapter

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"soniq/internal/platform/egress"
	"soniq/internal/platform/op"
)

// placeholder is {{name}} in an address or a body.
var placeholder = regexp.MustCompile(`\{\{\s*([a-z0-9_]+)\s*\}\}`)

// fill puts values into a template. escape encodes them for their place.
func fill(template string, values map[string]string, escape func(string) string) string {
	return placeholder.ReplaceAllStringFunc(template, func(found string) string {
		return escape(values[placeholder.FindStringSubmatch(found)[1]])
	})
}

// escapeURL encodes a value for any part of an address.
func escapeURL(value string) string { return strings.ReplaceAll(url.QueryEscape(value), "+", "%20") }

func verbatim(value string) string { return value }

// fillBody puts values into the texts of a JSON value.
func fillBody(body any, values map[string]string) any {
	switch x := body.(type) {
	case string:
		return fill(x, values, verbatim)
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

// placeholders returns the placeholders of a template or a body.
func placeholders(template any) (all []string) {
	switch x := template.(type) {
	case string:
		for _, m := range placeholder.FindAllStringSubmatch(x, -1) {
			all = append(all, m[1])
		}
	case []any:
		for _, v := range x {
			all = append(all, placeholders(v)...)
		}
	case map[string]any:
		for _, v := range x {
			all = append(all, placeholders(v)...)
		}
	}
	return all
}

// checkRecordURL returns the violations of the address at which people look at a record; "" is none. People open it: its scheme and host
// are fixed, and nothing but a web page is allowed.
func checkRecordURL(text string) []op.Violation {
	if err := checkPlaceholders(text, []string{"external_id"}); err != nil {
		return []op.Violation{op.Field("settings.record_url", "unknown_placeholder", err.Error())}
	}
	page := fill(text, nil, func(string) string { return "x" })
	if u, err := url.Parse(page); text != "" && (err != nil || !egress.IsWebAddress(page) || !strings.HasPrefix(strings.ToLower(text), strings.ToLower(u.Scheme+"://"+u.Host))) {
		return []op.Violation{op.Field("settings.record_url", "invalid_url", "must begin with https:// or http:// and a host without placeholders")}
	}
	return nil
}

// checkPlaceholders returns an error with the first placeholder that is not known.
func checkPlaceholders(template any, known []string) error {
	for _, n := range placeholders(template) {
		if !slices.Contains(known, n) {
			return fmt.Errorf("{{%s}} means nothing here; known are %s", n, strings.Join(known, ", "))
		}
	}
	return nil
}
