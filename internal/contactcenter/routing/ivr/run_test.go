package ivr

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"soniq/internal/contactcenter/flow"
	"soniq/internal/contactcenter/routing"
)

func TestTemplateValues_EscapedForURLAndJSON(t *testing.T) {
	t.Parallel()
	awkward := `a b&c=d/../"e"` + "\n+<%>"
	s := flow.Scope{Variables: map[string]any{"x": awkward, "n": 7.5, "list": []any{"p", 1.0}, "object": map[string]any{"k": "v"}}}
	fill := func(text string, form func(any) string) string {
		t.Helper()
		p, err := flow.ParseTemplate(text)
		if err != nil {
			t.Fatal(err)
		}
		return p.FillWith(s, form)
	}
	if got, want := fill("https://h/{{variables.x}}?q={{variables.n}}{{variables.none}}", urlValue),
		"https://h/a%20b%26c%3Dd%2F..%2F%22e%22%0A%2B%3C%25%3E?q=7.5"; got != want {
		t.Errorf("address %s, want %s", got, want)
	}
	text := fill(`{"x": "-{{variables.x}}-", "n": {{variables.n}}, "list": {{variables.list}}, "object": {{variables.object}}}`, jsonValue)
	var back map[string]any
	if err := json.Unmarshal([]byte(text), &back); err != nil || back["x"] != "-"+awkward+"-" || back["n"] != 7.5 || fmt.Sprint(back["list"], back["object"]) != "[p 1] map[k:v]" {
		t.Errorf("%s: %v, %v", text, back, err)
	}
}

func TestGroupOutcome_Precedence(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		answered, gone bool
		engaged, all   int
		want           string
	}{{true, true, 1, 2, routing.Answered}, {false, true, 2, 2, routing.CallerGone}, {false, false, 2, 2, routing.Busy},
		{false, false, 1, 2, routing.NoAnswer}, {false, false, 0, 0, routing.NoAnswer}} {
		if got := groupOutcome(c.answered, c.gone, c.engaged, c.all); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

func TestCallbackOffer_SpellsNumber(t *testing.T) {
	t.Parallel()
	if got := callbackOffer("+12025550143", true); !strings.Contains(got, " 1 2 0 2 5 5 5 0 1 4 3.") {
		t.Error(got)
	}
	if got := callbackOffer("+12025550143", false); strings.Contains(got, "2") {
		t.Error(got)
	}
}
