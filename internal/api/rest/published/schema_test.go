package published

import (
	"fmt"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
)

// direction is the direction in which a value is sent. In requests the new schema must accept everything that the old
// one accepted. In answers it must guarantee everything that the old one guaranteed.
type direction string

const (
	request direction = "request"
	answer  direction = "answer"
)

// pair is a pair of schemas, which is compared once in each direction.
type pair struct {
	old, fresh *openapi3.Schema
	direction  direction
}

func (p location) schema(d direction, old, fresh *openapi3.SchemaRef) {
	if old == nil || old.Value == nil {
		if d == request && fresh != nil && fresh.Value != nil {
			p.report("has a schema now")
		}
		return
	}
	if fresh == nil || fresh.Value == nil {
		if d == answer {
			p.report("has no schema any more")
		}
		return
	}
	if k := (pair{old.Value, fresh.Value, d}); !p.seen[k] {
		p.seen[k] = true
		p.values(d, old.Value, fresh.Value)
	}
}

func (p location) values(d direction, old, fresh *openapi3.Schema) {
	if p.variants(d, old, fresh) {
		return
	}
	p.types(d, old, fresh)
	p.enum(d, old, fresh)
	if old.Format != fresh.Format && (d == answer || fresh.Format != "") {
		p.report("format %q became %q", old.Format, fresh.Format)
	}
	if d == request {
		p.limits(old, fresh)
	}
	if d == request && old.Default != nil && fmt.Sprint(old.Default) != fmt.Sprint(fresh.Default) {
		p.report("the default %v became %v", old.Default, fresh.Default)
	}
	p.members(d, old, fresh)
	if old.Items != nil || fresh.Items != nil {
		p.in("items").schema(d, old.Items, fresh.Items)
	}
}

// variants compares a choice of schemas: every old one must have a new one that keeps it. It reports whether there is a choice.
func (p location) variants(d direction, old, fresh *openapi3.Schema) bool {
	was, is := choice(old), choice(fresh)
	if len(was) == 0 && len(is) == 0 {
		return false
	}
	if len(was) == 0 {
		was = openapi3.SchemaRefs{{Value: old}}
	}
	if len(is) == 0 {
		is = openapi3.SchemaRefs{{Value: fresh}}
	}
	for i, o := range was {
		kept := slices.ContainsFunc(is, func(f *openapi3.SchemaRef) bool {
			try := &comparison{seen: map[pair]bool{}}
			try.at("").schema(d, o, f)
			return len(try.found) == 0
		})
		if !kept {
			p.report("variant %d %s is not kept", i+1, o.Ref)
		}
	}
	return true
}

func choice(s *openapi3.Schema) openapi3.SchemaRefs { return slices.Concat(s.AnyOf, s.OneOf) }

func (p location) types(d direction, old, fresh *openapi3.Schema) {
	was, is := old.Type.Slice(), fresh.Type.Slice()
	if d == answer {
		was, is = is, was
	}
	if len(is) == 0 { // anything
		return
	}
	for _, name := range was {
		if !slices.Contains(is, name) && (name != "integer" || !slices.Contains(is, "number")) {
			p.report("type %v became %v", old.Type.Slice(), fresh.Type.Slice())
			return
		}
	}
	if len(was) == 0 {
		p.report("type %v became %v", old.Type.Slice(), fresh.Type.Slice())
	}
}

func (p location) enum(d direction, old, fresh *openapi3.Schema) {
	switch {
	case d == answer && len(old.Enum) > 0 && len(fresh.Enum) == 0:
		p.report("may be anything, no longer one of %v", old.Enum)
	case d == request && len(old.Enum) == 0 && len(fresh.Enum) > 0:
		p.report("must be one of %v now", fresh.Enum)
	case d == request && len(fresh.Enum) > 0:
		for _, v := range old.Enum {
			if !slices.Contains(fresh.Enum, v) {
				p.report("%v is not taken any more", v)
			}
		}
	}
}

// limits reports narrower limits in a request.
func (p location) limits(old, fresh *openapi3.Schema) {
	p.checkMax("maximum", old.Max, fresh.Max)
	p.checkMax("maxLength", toFloat(old.MaxLength), toFloat(fresh.MaxLength))
	p.checkMax("maxItems", toFloat(old.MaxItems), toFloat(fresh.MaxItems))
	p.checkMax("maxProperties", toFloat(old.MaxProps), toFloat(fresh.MaxProps))
	p.checkMin("minimum", old.Min, fresh.Min)
	p.checkMin("minLength", toFloat(&old.MinLength), toFloat(&fresh.MinLength))
	p.checkMin("minItems", toFloat(&old.MinItems), toFloat(&fresh.MinItems))
	p.checkMin("minProperties", toFloat(&old.MinProps), toFloat(&fresh.MinProps))
	if fresh.Pattern != "" && fresh.Pattern != old.Pattern {
		p.report("pattern %q became %q", old.Pattern, fresh.Pattern)
	}
	if fresh.UniqueItems && !old.UniqueItems {
		p.report("items must differ now")
	}
	if fresh.MultipleOf != nil && (old.MultipleOf == nil || *old.MultipleOf != *fresh.MultipleOf) {
		p.report("must be a multiple of %v now", *fresh.MultipleOf)
	}
}

func (p location) checkMax(name string, old, fresh *float64) {
	if fresh != nil && (old == nil || *fresh < *old) {
		p.report("%s is %v now, it was %s", name, *fresh, limitText(old))
	}
}

func (p location) checkMin(name string, old, fresh *float64) {
	if fresh != nil && (old == nil || *fresh > *old) {
		p.report("%s is %v now, it was %s", name, *fresh, limitText(old))
	}
}

func toFloat(n *uint64) *float64 {
	if n == nil {
		return nil
	}
	v := float64(*n)
	return &v
}

func limitText(n *float64) string {
	if n == nil {
		return "not limited"
	}
	return fmt.Sprint(*n)
}

func (p location) members(d direction, old, fresh *openapi3.Schema) {
	for _, name := range sorted(old.Properties) {
		if fresh.Properties[name] == nil {
			p.in(name).report("is gone")
			continue
		}
		p.in(name).schema(d, old.Properties[name], fresh.Properties[name])
	}
	was, is, change := old.Required, fresh.Required, "is required now"
	if d == answer {
		was, is, change = is, was, "is not always there any more"
	}
	for _, name := range is {
		if !slices.Contains(was, name) && (d == request || fresh.Properties[name] != nil) {
			p.in(name).report("%s", change)
		}
	}
	p.others(d, old.AdditionalProperties, fresh.AdditionalProperties)
}

// others compares members that have no name in the schema.
func (p location) others(d direction, old, fresh openapi3.AdditionalProperties) {
	if d == request && !forbids(old) && forbids(fresh) {
		p.report("other members are refused now")
	}
	if old.Schema != nil && fresh.Schema != nil {
		p.in("other members").schema(d, old.Schema, fresh.Schema)
	} else if old.Schema != nil && d == answer || fresh.Schema != nil && d == request && !forbids(old) {
		p.report("the schema of other members changed")
	}
}

func forbids(a openapi3.AdditionalProperties) bool { return a.Has != nil && !*a.Has }
