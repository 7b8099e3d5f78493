package op

import (
	"slices"

	"github.com/danielgtaylor/huma/v2"
)

// describeNulls adds null to the enumeration of a nullable member. In JSON Schema (2020-12, §6.1.2) an enumeration
// without null forbids it, even if the type allows it.
func describeNulls(doc *huma.OpenAPI) {
	for _, s := range doc.Components.Schemas.Map() {
		for _, member := range s.Properties {
			if member.Nullable && len(member.Enum) > 0 && !slices.Contains(member.Enum, nil) {
				member.Enum = append(slices.Clip(member.Enum), nil)
			}
		}
	}
}
