package crm

import (
	"fmt"
	"strconv"
	"strings"
)

// A path leads to values in a JSON document: names with dots between, [2] for one element of a list, [*] for all of them, such
// as $.data[*].phones[0].number.
type path []step

type step struct {
	name  string
	index int // of a list; all for every element
	list  bool
}

const (
	all      = -1
	maxSteps = 20
	maxFound = 1000 // values one path leads to
)

// parsePath reads a path. "" and "$" lead to the document itself.
func parsePath(text string) (path, error) {
	var p path
	text = strings.TrimPrefix(strings.TrimPrefix(text, "$"), ".")
	for part := range strings.SplitSeq(text, ".") {
		name, rest, _ := strings.Cut(part, "[")
		if name != "" {
			p = append(p, step{name: name})
		}
		for rest != "" {
			inside, after, ok := strings.Cut(rest, "]")
			if !ok {
				return nil, fmt.Errorf("%q has a [ without ]", text)
			}
			n, err := strconv.Atoi(inside)
			if inside == "*" {
				n, err = all, nil
			}
			if err != nil || n < all {
				return nil, fmt.Errorf("%q: [%s] must be a number or *", text, inside)
			}
			p = append(p, step{index: n, list: true})
			rest = strings.TrimPrefix(after, "[")
		}
	}
	if len(p) > maxSteps {
		return nil, fmt.Errorf("a path may have %d steps", maxSteps)
	}
	return p, nil
}

// values are what a path leads to in a document.
func (p path) values(doc any) []any {
	found := []any{doc}
	for _, s := range p {
		var next []any
		for _, v := range found {
			next = append(next, s.of(v)...)
			if len(next) > maxFound {
				next = next[:maxFound]
			}
		}
		found = next
	}
	return found
}

func (s step) of(v any) []any {
	switch x := v.(type) {
	case map[string]any:
		if inner, ok := x[s.name]; ok && !s.list {
			return []any{inner}
		}
	case []any:
		switch {
		case s.list && s.index == all:
			return x
		case s.list && s.index < len(x):
			return []any{x[s.index]}
		}
	}
	return nil
}

// texts are the values a path leads to, as texts; what is neither text, number nor truth is left out.
func (p path) texts(doc any) (out []string) {
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
			out = append(out, path{{list: true, index: all}}.texts(x)...)
		}
	}
	return out
}

// text is the first value a path leads to; "" where there is none.
func (p path) text(doc any) string {
	if all := p.texts(doc); len(all) > 0 {
		return all[0]
	}
	return ""
}
