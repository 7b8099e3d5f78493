package internal_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"soniq/internal/telephony/call"
)

// entryLiteral matches the kind of a timeline entry in the source.
var entryLiteral = regexp.MustCompile(`\b(?:add|Add)Entry\((?:ctx, )?"([a-z_.]+)"`)

// TestTimelineKinds_Declared compares the timeline kinds in the source with call.TimelineKinds: each is declared, and each declared one is
// in use.
func TestTimelineKinds_Declared(t *testing.T) {
	used := map[string]bool{}
	walk(t, func(path string) {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "e2e/") {
			return
		}
		src, err := os.ReadFile(filepath.Join("..", path))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range entryLiteral.FindAllStringSubmatch(string(src), -1) {
			if !declaredKind(m[1]) {
				t.Errorf("%s: the timeline kind %q is not in call.TimelineKinds", path, m[1])
			}
			used[m[1]] = true
		}
	})
	for _, k := range call.TimelineKinds {
		prefixed := func(kind string) bool { return strings.HasPrefix(kind, k.Kind) }
		byVariable := slices.ContainsFunc([]string{"stir.", "event.", "webhook.", "api."}, func(p string) bool {
			return strings.HasPrefix(k.Kind, p)
		})
		if !used[k.Kind] && !byVariable && !(strings.HasSuffix(k.Kind, ".") && slices.ContainsFunc(keys(used), prefixed)) {
			t.Errorf("call.TimelineKinds has %q, which nothing writes", k.Kind)
		}
	}
}

// declaredKind reports whether a kind is in call.TimelineKinds, or begins with a prefix there.
func declaredKind(kind string) bool {
	return slices.ContainsFunc(call.TimelineKinds, func(k call.TimelineKind) bool {
		return k.Kind == kind || strings.HasSuffix(k.Kind, ".") && strings.HasPrefix(kind, k.Kind)
	})
}

func keys(m map[string]bool) (all []string) {
	for k := range m {
		all = append(all, k)
	}
	return all
}

// TestTimelineKinds_Documented compares docs/timeline.md with call.TimelineKinds. SONIQ_UPDATE=1 rewrites the file.
func TestTimelineKinds_Documented(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Timeline of a call\n\n`GET /calls/{id}/events` lists what happened in a call. These are the kinds of its entries. A kind that ends in `…` continues with a name.\n\n" +
		"| kind | meaning |\n|---|---|\n")
	for _, k := range call.TimelineKinds {
		name := k.Kind
		if strings.HasSuffix(name, ".") {
			name += "…"
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, k.Meaning)
	}
	path := filepath.Join("..", "docs", "timeline.md")
	if os.Getenv("SONIQ_UPDATE") != "" {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != b.String() {
		t.Errorf("docs/timeline.md is not current (%v): run make golden", err)
	}
}
