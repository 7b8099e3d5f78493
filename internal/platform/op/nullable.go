package op

import (
	"slices"

	"github.com/danielgtaylor/huma/v2"
)

// describeNulls adds null to the values of a member that may be null: by JSON Schema (2020-12, §6.1.2) an enumeration without it
// forbids it, whatever the type allows.
func describeNulls(doc *huma.OpenAPI) {
	for _, s := range doc.Components.Schemas.Map() {
		for _, member := range s.Properties {
			if member.Nullable && len(member.Enum) > 0 && !slices.Contains(member.Enum, nil) {
				member.Enum = append(slices.Clip(member.Enum), nil)
			}
		}
	}
}
