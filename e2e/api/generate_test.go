package api_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"regexp"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// generator generates valid and invalid requests from the description. The same seed generates the same requests.
type generator struct {
	*rand.Rand
	pool map[string][]string // identifiers that were seen, by their prefix such as usr
}

func newGenerator(seed uint64) *generator {
	return &generator{rand.New(rand.NewPCG(seed, 0)), map[string][]string{}}
}

// chance returns true once in n times on average.
func (g *generator) chance(n int) bool { return g.IntN(n) == 0 }

func pick[T any](g *generator, all ...T) T { return all[g.IntN(len(all))] }

// value returns a value that a schema allows.
func (g *generator) value(name string, s *openapi3.Schema, depth int) any {
	if len(s.AnyOf) > 0 {
		return g.value(name, pick(g, s.AnyOf...).Value, depth)
	}
	if len(s.OneOf) > 0 {
		return g.value(name, pick(g, s.OneOf...).Value, depth)
	}
	if len(s.Enum) > 0 {
		return pick(g, s.Enum...)
	}
	kinds := s.Type.Slice()
	if len(kinds) == 0 {
		return map[string]any{}
	}
	switch kinds[g.IntN(len(kinds))] {
	case "null":
		return nil
	case "boolean":
		return g.chance(2)
	case "integer":
		return g.number(s)
	case "number":
		return float64(g.number(s)) / 2
	case "array":
		return g.array(name, s, depth)
	case "object":
		return g.object(s, depth)
	}
	return g.text(name, s)
}

func (g *generator) number(s *openapi3.Schema) int64 {
	low, high := int64(0), int64(1000)
	if s.Min != nil {
		low = int64(*s.Min)
		high = low + 1000
	}
	if s.Max != nil {
		high = int64(*s.Max)
	}
	if g.chance(4) {
		return pick(g, low, high)
	}
	return low + g.Int64N(max(1, high-low+1))
}

func (g *generator) array(name string, s *openapi3.Schema, depth int) any {
	n := int(s.MinItems) + g.IntN(3)
	if s.MaxItems != nil {
		n = min(n, int(*s.MaxItems))
	}
	all := []any{}
	for range n {
		if v := g.value(name, s.Items.Value, depth+1); v != nil {
			all = append(all, v)
		}
	}
	return all
}

func (g *generator) object(s *openapi3.Schema, depth int) any {
	all := map[string]any{}
	for name, member := range s.Properties {
		required := false
		for _, r := range s.Required {
			required = required || r == name
		}
		if required || depth < 3 && g.chance(3) {
			all[name] = g.value(name, member.Value, depth+1)
		}
	}
	if more := s.AdditionalProperties.Schema; more != nil && g.chance(2) {
		all["key"+fmt.Sprint(g.IntN(9))] = g.value("key", more.Value, depth+1)
	}
	return all
}

// idName matches the name of a member with an identifier, such as user_id.
var idName = regexp.MustCompile(`(^|_)ids?$`)

// words holds plausible and implausible texts for members.
var words = []string{"a", "Ada", "ext:101", "+12025550143", "ada@example.org", "https://example.org/x", "http://127.0.0.1:9/", "2030-01-31T09:30:00Z",
	"2026-01-31", "UTC", "en", "GB", "101", "", " ", "ä€𝄞", "*", "calls:read", "call.ended", "127.0.0.1", "x'; DROP TABLE calls; --", "%", "\x00", "\ufeff", "..", "null"}

func (g *generator) text(name string, s *openapi3.Schema) string {
	if ids := g.known(); idName.MatchString(name) && len(ids) > 0 && !g.chance(4) {
		return pick(g, ids...)
	}
	v := pick(g, words...)
	switch {
	case s.Format == "date-time":
		return pick(g, "2030-01-31T09:30:00Z", "2020-01-31T09:30:00.123+02:00")
	case name == "email" && !g.chance(3):
		v = fmt.Sprintf("u%d@example.org", g.Uint64())
	case name == "number" && !g.chance(3):
		v = fmt.Sprintf("+1202555%04d", g.IntN(10000))
	case name == "url" && !g.chance(3):
		v = "http://127.0.0.1:9/"
	case g.chance(6) && s.MaxLength != nil:
		v = strings.Repeat("x", int(*s.MaxLength))
	case g.chance(4):
		v = fmt.Sprintf("%s %d", v, g.IntN(1000))
	}
	if name == "text" && len(v) > 100 { // the server may speak it, which takes long
		v = v[:100]
	}
	for len([]rune(v)) < int(s.MinLength) {
		v += "x"
	}
	if s.MaxLength != nil && len([]rune(v)) > int(*s.MaxLength) {
		v = string([]rune(v)[:*s.MaxLength])
	}
	return v
}

// known returns the identifiers of all kinds seen so far.
func (g *generator) known() []string {
	var all []string
	for _, prefix := range sortedKeys(g.pool) {
		all = append(all, pick(g, g.pool[prefix]...))
	}
	return all
}

// learn stores identifiers from a response, some of each kind.
func (g *generator) learn(body []byte) {
	for _, id := range idValue.FindAllString(string(body), 20) {
		id = strings.Trim(id, `"`)
		prefix, _, _ := strings.Cut(id, "_")
		all := g.pool[prefix]
		if len(all) < 20 {
			g.pool[prefix] = append(all, id)
			continue
		}
		all[g.IntN(len(all))] = id
	}
}

var idValue = regexp.MustCompile(`"[a-z]{3,5}_[0-9A-HJKMNP-TV-Z]{26}"`)

// spoil makes a value invalid in one of many ways.
func (g *generator) spoil(v any) any {
	if m, ok := v.(map[string]any); ok && len(m) > 0 && !g.chance(4) {
		keys := sortedKeys(m)
		k := keys[g.IntN(len(keys))]
		switch g.IntN(3) {
		case 0:
			delete(m, k)
		case 1:
			m[k+"x"] = m[k]
		default:
			m[k] = g.spoil(m[k])
		}
		return m
	}
	return pick(g, any(nil), any(-1), any(1<<53), any(1.5), any(true), any(strings.Repeat("y", 70000)), any([]any{}), any([]any{nil}),
		any(map[string]any{}), any(map[string]any{"": ""}), any("\x00"), any("\ufffd"), any([]any{[]any{[]any{}}}), any("9999-99-99"))
}

// query returns the parameters of a request. If wrong is true, one of them may be invalid.
func (g *generator) query(o operation, wrong bool) url.Values {
	values := url.Values{}
	for _, p := range o.declared.Parameters {
		if p.Value.In != "query" || !p.Value.Required && !g.chance(4) {
			continue
		}
		v := g.value(p.Value.Name, p.Value.Schema.Value, 0)
		if all, ok := v.([]any); ok {
			for _, one := range all {
				values.Add(p.Value.Name, fmt.Sprint(one))
			}
			continue
		}
		values.Set(p.Value.Name, fmt.Sprint(v))
	}
	if wrong {
		name := pick(g, "limit", "cursor", "since", "until", "fields", "sort", "status", "nonsense", "phone")
		values.Set(name, pick(g, "", "x", "-1", "\x00", "%", "99999999999999999999", strings.Repeat("z", 600), "ä", "9999-12-31T23:59:59Z", "0001-01-01"))
	}
	return values
}
