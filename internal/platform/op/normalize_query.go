package op

import (
	"context"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"soniq/internal/platform/strictjson"
)

// normalizeQuery converts equivalent forms of a query to one: a list with commas or with a repeated name, and a + of
// a number or of a time that arrived as a space. It refuses malformed queries, and repeated parameters that are not lists. It
// returns the part of the query that cursors are bound to.
func normalizeQuery(h huma.Context) (bound string, e *Error) {
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
			plain := restorePlus(all[i])
			if p := parameter(h.Operation(), name); p != nil && p.Schema != nil && p.Schema.Type == huma.TypeInteger {
				plain = strictjson.PlainInteger(plain)
			}
			if plain != all[i] {
				all[i], changed = plain, true
			}
			// an invalid cursor has an error of its own
			if (strings.IndexByte(all[i], 0) >= 0 || !utf8.ValidString(all[i])) && name != "cursor" {
				wrong = append(wrong, Field(name, "invalid_value", noNUL+", and must be UTF-8"))
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

// lostPlus matches a number whose + was decoded to a space, because the URL was not encoded.
var lostPlus = regexp.MustCompile(`^ +[0-9][0-9 ()./-]{5,24}$`)

// timeWithLostPlus matches a time with the same fault in its offset. Nothing else has this form.
var timeWithLostPlus = regexp.MustCompile(`^([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.,]{5,18}) ([0-9]{2}:?[0-9]{2})$`)

func restorePlus(value string) string {
	if len(value) > 4 && value[4] == '-' {
		return timeWithLostPlus.ReplaceAllString(value, "$1+$2")
	}
	if !strings.HasPrefix(value, " ") || !lostPlus.MatchString(value) {
		return value
	}
	return "+" + strings.TrimSpace(value)
}

type cursorScopeKey struct{}

// withCursorScope stores the part of the query that cursors are bound to.
func withCursorScope(ctx context.Context, bound string) context.Context {
	return context.WithValue(ctx, cursorScopeKey{}, bound)
}

func cursorScope(ctx context.Context) string {
	b, _ := ctx.Value(cursorScopeKey{}).(string)
	return b
}
