package smscarrier

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
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

// jsonPath selects values in a JSON document, such as $.messages[0].id or results[*]. "" and "$" select the document
// itself.
type jsonPath []string

const maxPath = 20 // steps

func parsePath(text string) (jsonPath, error) {
	text = strings.TrimPrefix(strings.TrimPrefix(text, "$"), ".")
	text = strings.NewReplacer("[", ".", "]", "").Replace(text)
	if text == "" {
		return nil, nil
	}
	p := jsonPath(strings.Split(text, "."))
	if len(p) > maxPath || slices.Contains(p, "") {
		return nil, fmt.Errorf("must be a path such as messages[0].id, of at most %d steps", maxPath)
	}
	return p, nil
}

// values returns the selected values.
func (p jsonPath) values(doc any) []any {
	found := []any{doc}
	for _, step := range p {
		var next []any
		for _, v := range found {
			switch x := v.(type) {
			case map[string]any:
				if inner, ok := x[step]; ok {
					next = append(next, inner)
				}
			case []any:
				n, err := strconv.Atoi(step)
				switch {
				case step == "*":
					next = append(next, x...)
				case err == nil && n >= 0 && n < len(x):
					next = append(next, x[n])
				}
			}
		}
		found = next
	}
	return found
}

// text returns the first selected value as text; "" if there is none or the path is empty.
func (p jsonPath) text(doc any) string {
	if len(p) == 0 {
		return ""
	}
	for _, v := range p.values(doc) {
		switch x := v.(type) {
		case string:
			return strings.TrimSpace(x)
		case float64:
			return strconv.FormatFloat(x, 'f', -1, 64)
		case bool:
			return strconv.FormatBool(x)
		}
	}
	return ""
}
