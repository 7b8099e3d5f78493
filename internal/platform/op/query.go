package op

import (
	"context"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// tidy makes one form of what queries may say in two: a list is given with commas or by repeating its name, and the + of a
// number may arrive as a space. What cannot be read, or is given twice and is no list, is refused. It returns what the cursors
// of a list are bound to.
func tidy(h huma.Context) (bound string, e *Error) {
	r, _ := unwrap(h)
	if r.URL.RawQuery == "" {
		return r.URL.Path, nil
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return "", wrongQuery(Field("query", "malformed", "cannot be read: "+strings.TrimPrefix(err.Error(), "invalid ")))
	}
	var wrong []Violation
	changed := false
	for name, all := range values {
		for i := range all {
			if plain := plus(all[i]); plain != all[i] {
				all[i], changed = plain, true
			}
			if strings.IndexByte(all[i], 0) >= 0 && name != "cursor" { // a cursor says itself that it is none
				wrong = append(wrong, Field(name, "invalid_value", noNUL))
			}
		}
		if len(all) < 2 {
			continue
		}
		if p := parameter(h.Operation(), name); p != nil && !isList(p) {
			wrong = append(wrong, Field(name, "repeated", "is given more than once and is no list"))
		}
		values[name], changed = []string{strings.Join(all, ",")}, true
	}
	if len(wrong) > 0 {
		slices.SortFunc(wrong, func(a, b Violation) int { return strings.Compare(a.Field, b.Field) })
		return "", wrongQuery(wrong...)
	}
	if changed {
		r.URL.RawQuery = values.Encode()
	}
	for _, free := range []string{"cursor", "limit", "include_total", "fields"} {
		values.Del(free)
	}
	return r.URL.Path + "?" + values.Encode(), nil
}

func wrongQuery(wrong ...Violation) *Error {
	return &Error{Code: "invalid_query", Detail: wrong[0].Field + ": " + wrong[0].Message, Fields: wrong}
}

func parameter(o *huma.Operation, name string) *huma.Param {
	for _, p := range o.Parameters {
		if p.In == "query" && p.Name == name {
			return p
		}
	}
	return nil
}

func isList(p *huma.Param) bool { return p.Schema != nil && p.Schema.Type == huma.TypeArray }

// lostPlus is a number whose + arrived as a space, as it does in addresses that were not encoded.
var lostPlus = regexp.MustCompile(`^ +[0-9][0-9 ()./-]{5,24}$`)

func plus(value string) string {
	if !strings.HasPrefix(value, " ") || !lostPlus.MatchString(value) {
		return value
	}
	return "+" + strings.TrimSpace(value)
}

type boundKey struct{}

// withBound keeps what cursors are bound to.
func withBound(ctx context.Context, bound string) context.Context {
	return context.WithValue(ctx, boundKey{}, bound)
}

func bound(ctx context.Context) string {
	b, _ := ctx.Value(boundKey{}).(string)
	return b
}
