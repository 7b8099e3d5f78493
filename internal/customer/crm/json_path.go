package crm

import (
	"fmt"
	"strconv"
	"strings"
)

// jsonPath selects values in a JSON document: names separated by dots, [2] for one element of a list, [*] for all of
// them, such as $.data[*].phones[0].number.
type jsonPath []pathStep

type pathStep struct {
	name  string
	index int // of a list; allElements for every element
	list  bool
}

const (
	allElements   = -1
	maxPathSteps  = 20
	maxPathValues = 1000 // values that one path selects
)

// parsePath parses a path. "" and "$" select the document itself.
func parsePath(text string) (jsonPath, error) {
	var p jsonPath
	text = strings.TrimPrefix(strings.TrimPrefix(text, "$"), ".")
	for part := range strings.SplitSeq(text, ".") {
		name, rest, _ := strings.Cut(part, "[")
		if name != "" {
			p = append(p, pathStep{name: name})
		}
		for rest != "" {
			inside, after, ok := strings.Cut(rest, "]")
			if !ok {
				return nil, fmt.Errorf("%q has a [ without ]", text)
			}
			n, err := strconv.Atoi(inside)
			if inside == "*" {
				n, err = allElements, nil
			}
			if err != nil || n < allElements {
				return nil, fmt.Errorf("%q: [%s] must be a number or *", text, inside)
			}
			p = append(p, pathStep{index: n, list: true})
			rest = strings.TrimPrefix(after, "[")
		}
	}
	if len(p) > maxPathSteps {
		return nil, fmt.Errorf("a path may have %d steps", maxPathSteps)
	}
	return p, nil
}

// values returns the values that the path selects in a document.
func (p jsonPath) values(doc any) []any {
	found := []any{doc}
	for _, s := range p {
		var next []any
		for _, v := range found {
			next = append(next, s.apply(v)...)
			if len(next) > maxPathValues {
				next = next[:maxPathValues]
			}
		}
		found = next
	}
	return found
}

func (s pathStep) apply(v any) []any {
	switch x := v.(type) {
	case map[string]any:
		if inner, ok := x[s.name]; ok && !s.list {
			return []any{inner}
		}
	case []any:
		switch {
		case s.list && s.index == allElements:
			return x
		case s.list && s.index < len(x):
			return []any{x[s.index]}
		}
	}
	return nil
}

// texts returns the selected values as texts. Values other than strings, numbers and booleans are omitted.
func (p jsonPath) texts(doc any) (out []string) {
	for _, v := range p.values(doc) {
		switch x := v.(type) {
		case string:
			if x = strings.TrimSpace(x); x != "" {
				out = append(out, x)
			}
		case float64:
			out = append(out, strconv.FormatFloat(x, 'f', -1, 64))
		case bool:
			out = append(out, strconv.FormatBool(x))
		case []any:
			out = append(out, jsonPath{{list: true, index: allElements}}.texts(x)...)
		}
	}
	return out
}

// text returns the first selected value; "" if there is none.
func (p jsonPath) text(doc any) string {
	if all := p.texts(doc); len(all) > 0 {
		return all[0]
	}
	return ""
}
