package flow_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"soniq/internal/contactcenter/flow"
	"soniq/internal/platform/limit"
)

// costOf evaluates a text as an expression and as a template, and returns the cost.
func costOf(text string, s flow.Scope) (bytes uint64, took time.Duration) {
	return cost(func() {
		if e, err := flow.ParseExpression(text, false); err == nil {
			_, _ = e.Value(s)
		}
		if t, err := flow.ParseTemplate("{{" + text + "}}"); err == nil {
			_ = t.Fill(s)
		}
	})
}

// cost returns the bytes that work allocates, and the processor time that it takes. Other programs of the machine do not count, so that the
// tests may run at the lowest priority. The tests that measure must not run in parallel with others of the package.
func cost(work func()) (bytes uint64, took time.Duration) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := processorTime()
	work()
	took = processorTime() - began
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, took
}

// processorTime returns the processor time that this process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// scopeOfSize returns a scope with values as large as a server's response may be.
func scopeOfSize() flow.Scope {
	list := make([]any, 2000)
	for i := range list {
		list[i] = map[string]any{"name": "somebody", "n": float64(i)}
	}
	return flow.Scope{Caller: flow.Caller{Number: "+442079460018"}, Contact: map[string]any{"name": "Ada"}, Memory: map[string]any{},
		Variables: map[string]any{"text": strings.Repeat("ab", 32<<10), "list": list, "json": "[" + strings.Repeat("{},", 20_000) + "{}]"}}
}

func doublings(first, operation string) string {
	text := "let a=" + first + ";"
	names := "abcdefghijklmnopqrstuvwxyz"
	for i := range 25 {
		text += fmt.Sprintf("let %c=%s;", names[i+1], strings.ReplaceAll(operation, "_", names[i:i+1]))
	}
	return text + "len(z)"
}

// hostile lists expressions that took memory or time without bound, and others of their kind.
func hostile() map[string]string {
	return map[string]string{
		"concatenated strings": doublings(`"xxxxxxxxxx"`, "_+_"),
		"replaced letters":     doublings(`"xxxxxxxxxx"`, `replace(_,"x","xxxxxxxx")`),
		"replaced by a value":  `let a=variables.text;let b=replace(a,"a",a);len(b)`,
		"joined by a value":    `let a=split(variables.text,"");let b=join(a,variables.text);len(b)`,
		"concatenated lists":   doublings(`["x"]`, "concat(_,_)"),
		"nested lists":         doublings(`["x"]`, "[_,_]"),
		"nested maps":          doublings(`{"a":1}`, `{"a":_,"b":_}`),
		"flattened lists":      strings.Replace(doublings(`["x"]`, "[_,_]"), "len(z)", "len(flatten(z))", 1),
		"printed lists":        strings.Replace(doublings(`["x"]`, "[_,_]"), "len(z)", "string(z)", 1),
		"lists as JSON":        strings.Replace(doublings(`["x"]`, "[_,_]"), "len(z)", "toJSON(z)", 1),
		"compared lists":       strings.Replace(doublings(`["x"]`, "[_,_]"), "len(z)", "z==y", 1),
		"encoded":              doublings(`variables.text`, "toBase64(_)"),
		"deep JSON":            strings.Replace(doublings(`[1]`, "[_]"), "len(z)", "toJSON(z)", 1),
		"parsed JSON":          strings.Repeat(`fromJSON(variables.json)==1||`, 30) + "true",
		"split":                strings.Repeat(`len(split(variables.text,""))==1||`, 20) + "true",
		"compared elements":    strings.Repeat(`len(uniq(variables.list))==1||`, 25) + "true",
		"sorted":               strings.Repeat(`len(sort(split(variables.text,"")))==1||`, 15) + "true",
		"searched":             strings.Repeat(`"zz" in variables.list||`, 35) + "true",
		"found":                strings.Repeat(`variables.text contains "bb"||`, 30) + "true",
		"regular expression":   strings.Repeat(`variables.text matches "(a|b|ab)*c"||`, 20) + "true",
		"large expressions":    strings.Repeat(`variables.text matches "(\\pL{500}){2}x"||`, 20) + "true",
		"made expressions":     doublings(`"(a?b?)"`, "_+_+_") + `==1||variables.text matches y`,
		"nesting":              strings.Repeat("(", 400) + "1" + strings.Repeat(")", 400),
		"unary operators":      strings.Repeat("-", 900) + "1",
		"powers":               strings.Repeat("9999999999**", 70) + "9",
		"methods":              `let f=date("2020-01-01").Format;` + strings.Repeat(`f("Monday January Monday January")+`, 20) + `""`,
		"a shadowed function":  `let GuardText=date("2020-01-01").Format;let a="x"+"y";a`,
		"repeat":               `repeat("x",1000000000)`,
		"range":                `1..1000000000`,
		"predicate":            `map([1,2,3],#)`,
		"environment":          `string($env)`,
		"too long":             strings.Repeat("1+", 40_000) + "1",
	}
}

// Whatever an expression says, it costs at most 10 MB and about 50 ms. The time allows for a busy machine and the race detector.
func TestExpression_CostIsBounded(t *testing.T) {
	s := scopeOfSize()
	costOf("1", s)
	for name, text := range hostile() {
		bytes, took := costOf(text, s) // compiled and evaluated twice
		if bytes > 2*10<<20 || took > 2*time.Second {
			t.Errorf("%s took %d kB and %v: %.100s", name, bytes>>10, took, text)
		}
	}
}

// The values of one evaluation are limited together, also if each of them is small enough.
func TestExpression_ValuesTogether(t *testing.T) {
	s := scopeOfSize()
	for n, want := range map[int]string{4: "", 14: limit.ExpressionMemory.String()} { // 384 kB each
		e, err := flow.ParseExpression("let t=variables.text+variables.text;let u=t+t;"+strings.Repeat("len(u+t)==1||", n)+"true", true)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.IsTrue(s); (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d values: %v, want %q", n, err, want)
		}
	}
}

// The expressions of one call have a budget together.
func TestExpression_BudgetOfTheCall(t *testing.T) {
	t.Parallel()
	s := scopeOfSize()
	s.Budget = new(flow.Budget)
	e, err := flow.ParseExpression(`upper(variables.text) != ""`, true)
	if err != nil {
		t.Fatal(err)
	}
	most := int(limit.FlowMemory.Default / (128 << 10))
	for i := range most + 1 {
		if _, err = e.IsTrue(s); err != nil {
			if i < most/2 {
				t.Fatalf("refused after %d: %v", i, err)
			}
			break
		}
	}
	if err == nil || !strings.Contains(err.Error(), "used up") {
		t.Errorf("after %d evaluations of 128 kB: %v", most, err)
	}
	if truth, err := e.IsTrue(scopeOfSize()); err != nil || !truth {
		t.Errorf("another call: %v %v", truth, err)
	}
}

// What flows usually do has the same values as before.
func TestExpression_Values(t *testing.T) {
	t.Parallel()
	s := flow.Scope{Variables: map[string]any{"n": 3.0, "list": []any{"b", "a", "b"}, "words": "one two", "nothing": nil},
		Caller: flow.Caller{Number: "+442079460018", Name: "Ada"}, Contact: map[string]any{"company": map[string]any{"name": "Acme"}}}
	for text, want := range map[string]string{
		`"Hello " + caller.name + "!"`: "Hello Ada!", `variables.n + 1`: "4", `1 + 2`: "3", `replace(caller.number, "+44", "0")`: "02079460018",
		`replace("aaa", "a", "b", 2)`: "bba", `join(variables.list, "-")`: "b-a-b", `join(split(variables.words, " "))`: "onetwo", `upper(caller.name)`: "ADA",
		`join(uniq(sort(variables.list)), ",")`: "a,b", `contact.company.name`: "Acme", `contact.company?.city ?? "none"`: "none", `len(variables.list)`: "3",
		`caller.number matches "^\\+44\\d{10}$"`: "true", `caller.number matches variables.words`: "false", `variables.nothing matches "x"`: "false",
		`"a" in variables.list`: "true", `"z" not in variables.list`: "true", `caller.name in ["Ada", "Bob"]`: "true", `variables.words contains "two"`: "true",
		`let w = split(variables.words, " "); w[1]`: "two", `caller.name[0:2]`: "Ad", `variables.words | split(" ") | first() | upper()`: "ONE",
		`fromJSON("{\"a\":[1,2]}").a[1]`: "2", `date("2026-12-25").Format("Monday")`: "Friday", `trim("  x ") == "x" ? "yes" : "no"`: "yes",
		`get(contact, "company").name`: "Acme", `variables["n"] > 2 and not (caller.anonymous)`: "true", `string(variables.n) + "x"`: "3x",
		`max(1, 5, 3)`: "5", `toJSON({"a": variables.n})`: "{\n  \"a\": 3\n}", `int("12") + 1`: "13", `keys(contact)[0]`: "company",
		`lower(caller.name) startsWith "a"`: "true", `variables.list == ["b", "a", "b"]`: "true", `concat(variables.list, ["c"])[3]`: "c"} {
		tpl, err := flow.ParseTemplate("{{" + text + "}}")
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := tpl.Fill(s); got != want {
			t.Errorf("%s is %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{`"a" + 1`, `upper(1)`, `caller.name matches "("`, `caller.numbr + "x"`, `1 matches "x"`, `GuardText("x")`, `$env`, `used`, `call`, `Budget`} {
		if _, err := flow.ParseExpression(text, false); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

func FuzzExpressionCost(f *testing.F) {
	for _, text := range hostile() {
		f.Add(text)
	}
	s := scopeOfSize()
	f.Fuzz(func(t *testing.T, text string) {
		if bytes, took := costOf(text, s); bytes > 2*10<<20 || took > 5*time.Second {
			t.Errorf("%d kB and %v: %q", bytes>>10, took, text)
		}
	})
}

// templateCost parses and fills a text as a template, twice: as a text and as JSON. It returns the bytes that this allocated and the time
// it took.
func templateCost(text string, s flow.Scope) (bytes uint64, took time.Duration, result string) {
	bytes, took = cost(func() {
		if t, err := flow.ParseTemplate(text); err == nil {
			_ = t.Fill(s)
			result = t.FillWith(s, func(v any) string { b, _ := json.Marshal(v); return string(b) })
		}
	})
	return bytes, took, result
}

// hostileTemplates lists templates that cost much to parse or to fill.
func hostileTemplates() []string {
	all := []string{strings.Repeat("{{1}}", 250), strings.Repeat("{{variables.text}}", 200), strings.Repeat("{{variables.list}}", 200),
		strings.Repeat(`{{toJSON(variables.list)}}`, 150), strings.Repeat(`{{variables.text+variables.text}}`, 120),
		strings.Repeat(`{{upper(variables.text)}}`, 190), strings.Repeat(`{{variables.text matches "(a|b)*c"}}`, 120), strings.Repeat("{{", 200),
		strings.Repeat("{{{{}}}}", 100), "{{" + strings.Repeat("(", 2000), strings.Repeat("x", 64<<10), "{{caller.name}}{{contact.name}}{{time.date}}"}
	for _, text := range hostile() {
		all = append(all, "{{"+text+"}}")
	}
	return all
}

// Whatever a template says, it costs at most 10 MB each time it is filled, and its result is short.
func TestTemplate_CostIsBounded(t *testing.T) {
	s := scopeOfSize()
	for _, text := range hostileTemplates() {
		wantCheapTemplate(t, text, s, 2*time.Second)
	}
}

func wantCheapTemplate(t *testing.T, text string, s flow.Scope, most time.Duration) {
	t.Helper()
	bytes, took, result := templateCost(text, s) // filled twice
	if bytes > 2*10<<20 || took > most || len(result) > limit.TemplateResult.Int() {
		t.Errorf("%d kB, %v and a result of %d bytes: %.200q", bytes>>10, took, len(result), text)
	}
}

func FuzzTemplateCost(f *testing.F) {
	for _, text := range hostileTemplates() {
		f.Add(text)
	}
	s := scopeOfSize()
	f.Fuzz(func(t *testing.T, text string) { wantCheapTemplate(t, text, s, 5*time.Second) })
}
