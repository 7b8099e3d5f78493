package flow

import (
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// TransformSchema adds the config and the outcomes of each type to the schema of a node, for readers and for generators of clients.
// Requests are not validated by these alternatives: compile checks each node, and names it in every fault.
func (Node) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	parts := huma.NewMapRegistry("#/", func(t reflect.Type, hint string) string { // tools that check references do not look into extensions
		return strings.ReplaceAll(t.PkgPath(), "/", ".") + huma.DefaultSchemaNamer(t, hint)
	})
	alternatives := make([]*huma.Schema, len(types))
	for i, kind := range types {
		alternatives[i] = withoutReferences(parts, nodeSchema(parts, kind))
	}
	s.Extensions = map[string]any{"x-one-of": alternatives}
	s.Examples = []any{map[string]any{"id": "welcome", "type": "play",
		"config": map[string]any{"text": "Welcome to Harbor Dental.", "interrupt": true}, "next": map[string]any{"done": "team"}}}
	return s
}

// withoutReferences replaces the references in a schema by what they refer to. The schema must not refer to itself.
func withoutReferences(r huma.Registry, s *huma.Schema) *huma.Schema {
	if s == nil {
		return nil
	}
	if s.Ref != "" {
		return withoutReferences(r, r.SchemaFromRef(s.Ref))
	}
	for name, member := range s.Properties {
		s.Properties[name] = withoutReferences(r, member)
	}
	for i, one := range s.OneOf {
		s.OneOf[i] = withoutReferences(r, one)
	}
	s.Items = withoutReferences(r, s.Items)
	if all, ok := s.AdditionalProperties.(*huma.Schema); ok {
		s.AdditionalProperties = withoutReferences(r, all)
	}
	return s
}

// nodeSchema returns the schema of the nodes of one type.
func nodeSchema(r huma.Registry, kind string) *huma.Schema {
	action := newConfig(kind)
	config := r.Schema(reflect.TypeOf(action).Elem(), false, "")
	if prompt, ok := config.Properties["prompt"]; ok {
		text := &huma.Schema{Type: huma.TypeString, Description: "A text to speak, or the id of an audio file"}
		config.Properties["prompt"] = &huma.Schema{Description: prompt.Description, OneOf: []*huma.Schema{{Ref: prompt.Ref}, text}}
	}
	next := nextSchema(action)
	s := &huma.Schema{Type: huma.TypeObject, Title: kind, Required: []string{"type"}, Properties: map[string]*huma.Schema{
		"type": {Type: huma.TypeString, Enum: []any{kind}}, "config": config, "next": next}}
	if len(config.Required) > 0 {
		s.Required = append(s.Required, "config")
	}
	if len(next.Required) > 0 {
		s.Required = append(s.Required, "next")
	}
	return s
}

// nextSchema returns the schema of the nodes that follow the outcomes of a type.
func nextSchema(action Action) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeObject, Properties: map[string]*huma.Schema{}, AdditionalProperties: false}
	for _, o := range action.Outcomes() {
		s.Properties[o.Name] = &huma.Schema{Type: huma.TypeString, Description: afterOutcome(o)}
		if o.Required {
			s.Required = append(s.Required, o.Name)
		}
	}
	if _, menu := action.(*Menu); menu {
		s.AdditionalProperties = &huma.Schema{Type: huma.TypeString,
			Description: "Node that follows a digit; each digit of the menu needs one"}
	}
	return s
}

// afterOutcome describes what follows an outcome.
func afterOutcome(o Outcome) string {
	switch {
	case o.Required:
		return "Node that follows"
	case o.Fallback != "":
		return "Node that follows; that of " + o.Fallback + " unless given"
	}
	return "Node that follows; the flow ends unless given"
}
