package flow

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"soniq/internal/platform/strictjson"
)

// guide describes the steps of flows between two marks.
const (
	guide     = "../../../docs/routing.md"
	tableFrom = "<!-- steps: made by make golden -->\n"
	tableTo   = "<!-- end of steps -->\n"
)

// TestSteps_Documented compares the table of steps with their Go types. SONIQ_UPDATE=1 rewrites it.
func TestSteps_Documented(t *testing.T) {
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(text), tableFrom)
	table, after, ok := strings.Cut(rest, tableTo)
	if !ok {
		t.Fatalf("%s has no table between %s and %s", guide, tableFrom, tableTo)
	}
	want := stepTable(t)
	if table == want {
		return
	}
	if os.Getenv("SONIQ_UPDATE") == "" {
		t.Fatal("the table of steps is out of date: run make golden")
	}
	if err := os.WriteFile(guide, []byte(before+tableFrom+want+tableTo+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

func stepTable(t *testing.T) string {
	t.Helper()
	out := "| step | member of config | value | |\n|---|---|---|---|\n"
	for _, kind := range types {
		action := newConfig(kind)
		var outcomes []string
		for _, o := range action.Outcomes() {
			name := "`" + o.Name + "`"
			switch {
			case o.Fallback != "":
				name += " (else as `" + o.Fallback + "`)"
			case !o.Required:
				name += " (else the flow ends)"
			}
			outcomes = append(outcomes, name)
		}
		if kind == "menu" {
			outcomes = append([]string{"each digit"}, outcomes...)
		}
		if len(outcomes) == 0 {
			outcomes = []string{"none"}
		}
		out += fmt.Sprintf("| **`%s`** | | | outcomes: %s |\n", kind, strings.Join(outcomes, ", "))
		out += memberRows(reflect.TypeOf(action).Elem())
	}
	return out
}

func memberRows(of reflect.Type) (out string) {
	for _, f := range reflect.VisibleFields(of) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "" {
			continue
		}
		value := valueOf(f)
		if options == "" {
			value += ", required"
		}
		out += fmt.Sprintf("| | `%s` | %s | %s |\n", name, value, f.Tag.Get("doc"))
	}
	return out
}

func valueOf(f reflect.StructField) string {
	tag, kind := f.Tag.Get, f.Type
	for kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	value := map[reflect.Kind]string{reflect.String: "text", reflect.Bool: "true or false", reflect.Int: "number", reflect.Slice: "list",
		reflect.Map: "object", reflect.Struct: "object"}[kind.Kind()]
	if kind == reflect.TypeFor[Prompt]() {
		value = "text, id of an audio file, or object as of `play`"
	}
	if tag("enum") != "" {
		value = "`" + strings.ReplaceAll(tag("enum"), ",", "`, `") + "`"
	}
	if tag("minimum") != "" {
		value = tag("minimum") + " to " + tag("maximum")
	}
	if tag("default") != "" {
		value += "; default `" + tag("default") + "`"
	}
	return value
}

// TestSchema_EveryStep has each type with its members, its defaults and its outcomes.
func TestSchema_EveryStep(t *testing.T) {
	t.Parallel()
	r := huma.NewMapRegistry("#/s/", func(of reflect.Type, hint string) string {
		return strings.ReplaceAll(of.PkgPath(), "/", ".") + huma.DefaultSchemaNamer(of, hint)
	})
	s := r.SchemaFromRef(r.Schema(reflect.TypeFor[Node](), true, "").Ref)
	all, _ := s.Extensions["x-one-of"].([]*huma.Schema)
	if len(all) != len(types) || len(all) != len(fullConfigs) {
		t.Fatalf("%d alternatives for %d types", len(all), len(types))
	}
	for i, kind := range types {
		action, shown := newConfig(kind), all[i]
		if !slices.Equal(shown.Properties["type"].Enum, []any{kind}) {
			t.Errorf("%s: %v", kind, shown.Properties["type"].Enum)
		}
		config := shown.Properties["config"]
		b, err := json.Marshal(action)
		if err != nil {
			t.Fatal(err)
		}
		var standard map[string]any
		if err := json.Unmarshal(b, &standard); err != nil {
			t.Fatal(err)
		}
		for name := range strictjson.Names(reflect.TypeOf(action).Elem()) {
			member := config.Properties[name]
			if member == nil || member.Description == "" && member.Type != huma.TypeObject {
				t.Errorf("%s.%s is not described", kind, name)
			} else if d := member.Default; d != nil && fmt.Sprint(d) != fmt.Sprint(standard[name]) {
				t.Errorf("%s.%s: default %v, is %v", kind, name, d, standard[name])
			}
		}
		for _, o := range action.Outcomes() {
			next := shown.Properties["next"]
			if next.Properties[o.Name] == nil || slices.Contains(next.Required, o.Name) != o.Required {
				t.Errorf("%s: outcome %s: %+v", kind, o.Name, next)
			}
		}
	}
}

// TestUnknown_NamesKnown names the known members, types and outcomes.
func TestUnknown_NamesKnown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		node Node
		want []string
	}{
		{Node{ID: "a", Type: "queue", Config: map[string]any{"queue": "que_1", "wait": 5}},
			[]string{"queue: unexpected", "wait: unexpected", "known are max_wait_seconds, priority, queue_id"}},
		{Node{ID: "a", Type: "menu", Config: map[string]any{"prompt": map[string]any{"say": "Hi"}}}, []string{"say: unexpected", "known are audio_id, lang, text, voice"}},
		{Node{ID: "a", Type: "say"}, []string{`no type "say"`, "known are play, menu, "}},
		{Node{ID: "a", Type: "tag", Config: map[string]any{"tags": []any{"x"}}, Next: map[string]string{"ok": "a"}}, []string{`no outcome "ok"; it has done`}},
	} {
		_, found, err := compile(t.Context(), "org_a", acceptAll, Graph{Entry: "a", Nodes: []Node{c.node}})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if text := fmt.Sprint(found.Errors); !strings.Contains(text, want) {
				t.Errorf("%v: %s does not say %q", c.node, text, want)
			}
		}
	}
}
