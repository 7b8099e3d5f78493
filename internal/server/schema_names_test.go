package server

import (
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// TestOpenAPI_NamesOfGeneratorsUnique checks the names that generators of clients make: one of each schema, and one of
// schema and property where the property has no schema of its own and is an enumeration or may be null.
func TestOpenAPI_NamesOfGeneratorsUnique(t *testing.T) {
	if raceDetector {
		t.Skip("one goroutine alone: runs without the race detector, in another part of the suite")
	}
	model, err := openapi3.NewLoader().LoadFromData(describe(t))
	if err != nil {
		t.Fatal(err)
	}
	owners := map[string]string{}
	claim := func(name, owner string) {
		if other, taken := owners[name]; taken {
			t.Errorf("%s and %s both become %s", owner, other, name)
		}
		owners[name] = owner
	}
	for name := range model.Components.Schemas {
		claim(name, name)
	}
	for name, s := range model.Components.Schemas {
		for property, p := range s.Value.Properties {
			if p.Ref == "" && (len(p.Value.Enum) > 0 || p.Value.Type != nil && len(*p.Value.Type) > 1) {
				claim(name+camelCase(property), name+"."+property)
			}
		}
	}
}

func camelCase(property string) (name string) {
	for part := range strings.SplitSeq(property, "_") {
		if part != "" {
			name += strings.ToUpper(part[:1]) + part[1:]
		}
	}
	return name
}
