package limit

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestLimits_Documented compares docs/limits.md with All. SONIQ_UPDATE=1 rewrites the file.
func TestLimits_Documented(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("# Limits\n\nThese limits keep one party from taking what all need. An error says which limit refused a request. The metric\n`" +
		Metric + "{limit=\"…\"}` counts refusals.\n\n| limit | value | per | error code | protects | setting |\n|---|---|---|---|---|---|\n")
	for _, l := range All() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", l.Name, l, l.Per, code(l.Code), l.Protects, code(l.Setting))
	}
	path := filepath.Join("..", "..", "..", "docs", "limits.md")
	if os.Getenv("SONIQ_UPDATE") != "" {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != b.String() {
		t.Errorf("docs/limits.md is not current (%v): run make golden", err)
	}
}

func code(text string) string {
	if text == "" {
		return "–"
	}
	return "`" + text + "`"
}

// declaration matches the name of a limit in the source.
var declaration = regexp.MustCompile(`&Limit\{Name: "([a-z0-9_]+)"`)

// Every limit that the package declares is in All, once, and is complete.
func TestLimits_Listed(t *testing.T) {
	t.Parallel()
	listed := map[string]bool{}
	for _, l := range All() {
		if listed[l.Name] {
			t.Errorf("%s is listed twice", l.Name)
		}
		if listed[l.Name] = true; l.Default <= 0 || l.Per == "" || l.Protects == "" {
			t.Errorf("%s: the value, the party or the purpose is missing", l.Name)
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil || strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range declaration.FindAllStringSubmatch(string(text), -1) {
			if !listed[m[1]] {
				t.Errorf("%s declares %s, which All does not return", file, m[1])
			}
			delete(listed, m[1])
		}
	}
	for name := range listed {
		t.Errorf("%s is not declared in the form &Limit{Name: …", name)
	}
}

func TestGate_AllClaimsOrNone(t *testing.T) {
	t.Parallel()
	var g Gate
	one, two := &Limit{Name: "one", Default: 1}, &Limit{Name: "two", Default: 2}
	ctx := context.Background()
	leave, full := g.Enter(ctx, 0, Claim{two, "org_1"}, Claim{one, ""})
	if full != nil {
		t.Fatal(full.Name)
	}
	if _, full := g.Enter(ctx, 0, Claim{two, "org_1"}, Claim{one, ""}); full != one || one.Refused() != 1 {
		t.Errorf("the second was not refused by the second claim: %v", full)
	}
	if n := g.Taken(Claim{two, "org_1"}); n != 1 {
		t.Errorf("a refused claim took a place: %d", n)
	}
	if other, full := g.Enter(ctx, 0, Claim{two, "org_1"}); full != nil {
		t.Error("a free place was refused")
	} else {
		other()
	}
	leave()
	leave() // without effect
	if n := g.Taken(Claim{one, ""}); n != 0 || len(g.taken) != 0 {
		t.Errorf("%d places are still taken", n)
	}
}

func TestGate_WaitsForAPlace(t *testing.T) {
	t.Parallel()
	var g Gate
	one := &Limit{Name: "one", Default: 1}
	leave, _ := g.Enter(context.Background(), 0, Claim{one, "a"})
	entered := make(chan *Limit)
	go func() {
		next, full := g.Enter(context.Background(), time.Minute, Claim{one, "a"})
		if full == nil {
			next()
		}
		entered <- full
	}()
	leave()
	if full := <-entered; full != nil {
		t.Error("refused although a place became free")
	}
	gone, cancel := context.WithCancel(context.Background())
	again, _ := g.Enter(context.Background(), 0, Claim{one, "a"})
	defer again()
	cancel()
	if _, full := g.Enter(gone, time.Minute, Claim{one, "a"}); full != one {
		t.Error("a caller that left got a place")
	}
}
