package placeholder_test

import (
	"fmt"
	"slices"
	"testing"

	"soniq/internal/platform/placeholder"
)

func TestFill_ValuesAreEncodedForTheirPlace(t *testing.T) {
	t.Parallel()
	values := map[string]string{"name": "Ada & Bob +1", "phone": "+4420"}
	for template, want := range map[string]string{
		"https://crm.example/{{phone}}?q={{ name }}": "https://crm.example/%2B4420?q=Ada%20%26%20Bob%20%2B1",
		"{{none}}x": "x", "{{Name}} {name} {{": "{{Name}} {name} {{",
	} {
		if got := placeholder.Fill(template, values, placeholder.EscapeURL); got != want {
			t.Errorf("%s: %s, want %s", template, got, want)
		}
	}
	body := map[string]any{"to": "{{phone}}", "list": []any{"{{name}}", 7.0, nil}, "{{phone}}": true}
	want := map[string]any{"to": "+4420", "list": []any{"Ada & Bob +1", 7.0, nil}, "{{phone}}": true}
	if got := placeholder.FillJSON(body, values); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
	if body["to"] != "{{phone}}" {
		t.Error("the template itself was changed")
	}
}

func TestCheck_NamesUnknownPlaceholders(t *testing.T) {
	t.Parallel()
	body := []any{"{{from}} {{to}}", map[string]any{"text": "{{text}} {{to}}"}}
	if got := placeholder.Names(body); !slices.Equal(got, []string{"from", "to", "text", "to"}) {
		t.Errorf("names %v", got)
	}
	if err := placeholder.Check(body, []string{"from", "to", "text"}); err != nil {
		t.Error(err)
	}
	if err := placeholder.Check(body, []string{"from", "to"}); err == nil || err.Error() != "{{text}} means nothing here; known are from, to" {
		t.Errorf("error %v", err)
	}
}
