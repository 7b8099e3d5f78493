package op

import (
	"reflect"
	"testing"

	"soniq/internal/platform/access"
)

type operation struct{}

func TestSchemaName_PackageAndType(t *testing.T) {
	t.Parallel()
	for want, v := range map[string]any{
		"AccessPrincipal":     access.Principal{},
		"PageAccessPrincipal": Page[access.Principal]{},
		"ChangeListString":    &Change[[]string]{},
		"ChangeInt":           Change[int]{},
		"Operation":           operation{},
	} {
		if got := schemaName(reflect.TypeOf(v), ""); got != want {
			t.Errorf("%T is %s, want %s", v, got, want)
		}
	}
}
