// Package jsonpath selects values in JSON documents by the paths of RFC 9535, within limits.
package jsonpath

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/theory/jsonpath"
	"github.com/theory/jsonpath/spec"
)

const (
	maxLength = 500    // bytes of a path
	maxSteps  = 20     // segments of a path
	maxValues = 10_000 // values that one path selects
)

// Path is a compiled path, such as $.data[*].phones[0].number. The zero value selects the document itself. It is safe
// for concurrent use.
type Path struct {
	steps []*spec.Segment
}

// Parse compiles a path of RFC 9535. It also accepts the spelling of earlier versions of soniq: without "$.", with names
// of any characters except ".", "[" and "]", and with messages.0 for messages[0]. "" selects the document itself.
func Parse(text string) (Path, error) {
	if len(text) > maxLength {
		return Path{}, fmt.Errorf("a path may have %d characters", maxLength)
	}
	full := text
	switch {
	case text == "":
		return Path{}, nil
	case strings.HasPrefix(text, "["):
		full = "$" + text
	case !strings.HasPrefix(text, "$"):
		full = "$." + strings.TrimPrefix(text, ".")
	}
	var p Path
	compiled, err := jsonpath.Parse(full)
	if err == nil {
		p.steps, err = compiled.Query().Segments(), checkCost(full)
	} else if earlier, ok := parseEarlier(text); ok {
		p.steps, err = earlier, nil
	}
	if err != nil {
		return Path{}, fmt.Errorf("%s: %s", full, strings.TrimPrefix(err.Error(), "jsonpath: "))
	}
	if len(p.steps) > maxSteps {
		return Path{}, fmt.Errorf("a path may have %d steps", maxSteps)
	}
	return p, nil
}

// MustParse is Parse for constant paths. It panics if the path is wrong.
func MustParse(text string) Path {
	p, err := Parse(text)
	if err != nil {
		panic(err)
	}
	return p
}

// parseEarlier compiles a path in the spelling of earlier versions.
func parseEarlier(text string) (steps []*spec.Segment, ok bool) {
	text = strings.TrimPrefix(strings.TrimPrefix(text, "$"), ".")
	for part := range strings.SplitSeq(text, ".") {
		name, rest, _ := strings.Cut(part, "[")
		if strings.Contains(name, "]") {
			return nil, false
		}
		if name != "" {
			steps = append(steps, earlierName(name))
		}
		for rest != "" {
			inside, after, closed := strings.Cut(rest, "]")
			n, err := strconv.Atoi(inside)
			switch {
			case !closed, inside != "*" && (err != nil || n < 0), after != "" && !strings.HasPrefix(after, "["), after == "[":
				return nil, false
			case inside == "*":
				steps = append(steps, spec.Child(spec.Wildcard()))
			default:
				steps = append(steps, spec.Child(spec.Index(n)))
			}
			rest = strings.TrimPrefix(after, "[")
		}
	}
	return steps, len(steps) > 0
}

// earlierName returns the step for a name. Digits also select an element of a list.
func earlierName(name string) *spec.Segment {
	if name == "*" {
		return spec.Child(spec.Wildcard())
	}
	if n, err := strconv.Atoi(name); err == nil && n >= 0 {
		return spec.Child(spec.Name(name), spec.Index(n))
	}
	return spec.Child(spec.Name(name))
}

// IsDocument reports whether the path selects the document itself.
func (p Path) IsDocument() bool { return len(p.steps) == 0 }

// Values returns the values that the path selects in a document, 10,000 at most.
func (p Path) Values(doc any) []any {
	found := []any{doc}
	for _, s := range p.steps {
		var next []any
		for _, v := range found {
			if next = append(next, s.Select(v, doc)...); len(next) >= maxValues {
				next = slices.Clip(next[:maxValues])
				break
			}
		}
		found = next
	}
	return found
}

// Texts returns the selected values as texts. Values other than strings, numbers and booleans are omitted, also empty
// strings. Of a selected list it returns the elements.
func (p Path) Texts(doc any) (out []string) {
	for _, v := range p.Values(doc) {
		if list, ok := v.([]any); ok {
			for _, one := range list[:min(len(list), maxValues)] {
				out = appendText(out, one)
			}
			continue
		}
		out = appendText(out, v)
	}
	return out
}

func appendText(out []string, v any) []string {
	switch x := v.(type) {
	case string:
		if x = strings.TrimSpace(x); x != "" {
			return append(out, x)
		}
	case float64:
		return append(out, strconv.FormatFloat(x, 'f', -1, 64))
	case bool:
		return append(out, strconv.FormatBool(x))
	}
	return out
}

// Text returns the first selected value as text; "" if there is none.
func (p Path) Text(doc any) string {
	if all := p.Texts(doc); len(all) > 0 {
		return all[0]
	}
	return ""
}
