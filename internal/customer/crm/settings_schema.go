package crm

import (
	"maps"
	"reflect"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"soniq/internal/customer/crm/adapter"
)

// schemaOf returns the JSON schema of a settings type, as one object without references.
func schemaOf(settings any) *huma.Schema {
	if settings == nil {
		return &huma.Schema{Type: "object", AdditionalProperties: false}
	}
	r := huma.NewMapRegistry("#/", huma.DefaultSchemaNamer)
	s := huma.SchemaFromType(r, reflect.TypeOf(settings))
	return inlined(r, s)
}

// inlined replaces references by the schemas they refer to.
func inlined(r huma.Registry, s *huma.Schema) *huma.Schema {
	if s.Ref != "" {
		s = r.SchemaFromRef(s.Ref)
	}
	out := *s
	if s.Items != nil {
		out.Items = inlined(r, s.Items)
	}
	if len(s.Properties) > 0 {
		out.Properties = map[string]*huma.Schema{}
		for name, p := range s.Properties {
			out.Properties[name] = inlined(r, p)
		}
	}
	delete(out.Properties, "$schema")
	return &out
}

func sortedFields() []string { return slices.Sorted(maps.Keys(adapter.FieldPaths)) }
