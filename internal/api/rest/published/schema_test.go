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

func (p place) schema(d direction, old, fresh *openapi3.SchemaRef) {
	if old == nil || old.Value == nil {
		if d == request && fresh != nil && fresh.Value != nil {
			p.say("has a schema now")
		}
		return
	}
	if fresh == nil || fresh.Value == nil {
		if d == answer {
			p.say("has no schema any more")
		}
		return
	}
	if k := (pair{old.Value, fresh.Value, d}); !p.seen[k] {
		p.seen[k] = true
		p.values(d, old.Value, fresh.Value)
	}
}

func (p place) values(d direction, old, fresh *openapi3.Schema) {
	if p.variants(d, old, fresh) {
		return
	}
	p.types(d, old, fresh)
	p.enum(d, old, fresh)
	if old.Format != fresh.Format && (d == answer || fresh.Format != "") {
		p.say("format %q became %q", old.Format, fresh.Format)
	}
	if d == request {
		p.limits(old, fresh)
	}
	if d == request && old.Default != nil && fmt.Sprint(old.Default) != fmt.Sprint(fresh.Default) {
		p.say("the default %v became %v", old.Default, fresh.Default)
	}
	p.members(d, old, fresh)
	if old.Items != nil || fresh.Items != nil {
		p.in("items").schema(d, old.Items, fresh.Items)
	}
}

// variants compares a choice of schemas: every old one must have a new one that keeps it. It reports whether there is a choice.
func (p place) variants(d direction, old, fresh *openapi3.Schema) bool {
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
			p.say("variant %d %s is not kept", i+1, o.Ref)
		}
	}
	return true
}

func choice(s *openapi3.Schema) openapi3.SchemaRefs { return slices.Concat(s.AnyOf, s.OneOf) }

func (p place) types(d direction, old, fresh *openapi3.Schema) {
	was, is := old.Type.Slice(), fresh.Type.Slice()
	if d == answer {
		was, is = is, was
	}
	if len(is) == 0 { // anything
		return
	}
	for _, name := range was {
		if !slices.Contains(is, name) && (name != "integer" || !slices.Contains(is, "number")) {
			p.say("type %v became %v", old.Type.Slice(), fresh.Type.Slice())
			return
		}
	}
	if len(was) == 0 {
		p.say("type %v became %v", old.Type.Slice(), fresh.Type.Slice())
	}
}

func (p place) enum(d direction, old, fresh *openapi3.Schema) {
	switch {
	case d == answer && len(old.Enum) > 0 && len(fresh.Enum) == 0:
		p.say("may be anything, no longer one of %v", old.Enum)
	case d == request && len(old.Enum) == 0 && len(fresh.Enum) > 0:
		p.say("must be one of %v now", fresh.Enum)
	case d == request && len(fresh.Enum) > 0:
		for _, v := range old.Enum {
			if !slices.Contains(fresh.Enum, v) {
				p.say("%v is not taken any more", v)
			}
		}
	}
}

// limits reports narrower limits in a request.
func (p place) limits(old, fresh *openapi3.Schema) {
	p.most("maximum", old.Max, fresh.Max)
	p.most("maxLength", whole(old.MaxLength), whole(fresh.MaxLength))
	p.most("maxItems", whole(old.MaxItems), whole(fresh.MaxItems))
	p.most("maxProperties", whole(old.MaxProps), whole(fresh.MaxProps))
	p.least("minimum", old.Min, fresh.Min)
	p.least("minLength", whole(&old.MinLength), whole(&fresh.MinLength))
	p.least("minItems", whole(&old.MinItems), whole(&fresh.MinItems))
	p.least("minProperties", whole(&old.MinProps), whole(&fresh.MinProps))
	if fresh.Pattern != "" && fresh.Pattern != old.Pattern {
		p.say("pattern %q became %q", old.Pattern, fresh.Pattern)
	}
	if fresh.UniqueItems && !old.UniqueItems {
		p.say("items must differ now")
	}
	if fresh.MultipleOf != nil && (old.MultipleOf == nil || *old.MultipleOf != *fresh.MultipleOf) {
		p.say("must be a multiple of %v now", *fresh.MultipleOf)
	}
}

func (p place) most(name string, old, fresh *float64) {
	if fresh != nil && (old == nil || *fresh < *old) {
		p.say("%s is %v now, it was %s", name, *fresh, shown(old))
	}
}

func (p place) least(name string, old, fresh *float64) {
	if fresh != nil && (old == nil || *fresh > *old) {
		p.say("%s is %v now, it was %s", name, *fresh, shown(old))
	}
}

func whole(n *uint64) *float64 {
	if n == nil {
		return nil
	}
	v := float64(*n)
	return &v
}

func shown(n *float64) string {
	if n == nil {
		return "not limited"
	}
	return fmt.Sprint(*n)
}

func (p place) members(d direction, old, fresh *openapi3.Schema) {
	for _, name := range sorted(old.Properties) {
		if fresh.Properties[name] == nil {
			p.in(name).say("is gone")
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
			p.in(name).say("%s", change)
		}
	}
	p.others(d, old.AdditionalProperties, fresh.AdditionalProperties)
}

// others compares members that have no name in the schema.
func (p place) others(d direction, old, fresh openapi3.AdditionalProperties) {
	if d == request && !forbids(old) && forbids(fresh) {
		p.say("other members are refused now")
	}
	if old.Schema != nil && fresh.Schema != nil {
		p.in("other members").schema(d, old.Schema, fresh.Schema)
	} else if old.Schema != nil && d == answer || fresh.Schema != nil && d == request && !forbids(old) {
		p.say("the schema of other members changed")
	}
}

func forbids(a openapi3.AdditionalProperties) bool { return a.Has != nil && !*a.Has }
