package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// layer says what a room may import of ours. Rooms in every list of foundations may be imported by all above.
var foundations = []string{"access", "blob", "bus", "db", "egress", "event", "job", "op", "seal"}

// features lists the feature rooms and the arrows between them.
var features = map[string][]string{
	"org":        {},
	"auth":       {"org"},
	"user":       {"org"},
	"account":    {"auth", "user", "org"},
	"mail":       {},
	"partner":    {"org", "user", "auth"},
	"device":     {"user", "org"},
	"provision":  {"device", "user", "org"},
	"number":     {"org"},
	"agent":      {"user", "org"},
	"queue":      {"agent", "user", "org"},
	"flow":       {"number", "org"},
	"voicemail":  {},
	"call":       {"journal"},
	"memory":     {},
	"transcript": {"call", "memory"},
	"webhook":    {},
	"stream":     {},
	"audio":      {},
	"erasure":    {},
	"analytics":  {},
	"contact":    {"call", "org"},
	"crm":        {"call", "contact"},
	"audit":      {},
	"sms":        {},
	"esme":       {"sms", "smpp"},
	"sandbox":    {"sms", "contact"},
	"smsc":       {"sms", "smpp", "org"},
}

// others lists every other room with all it may import of ours.
var others = map[string][]string{
	"access": {}, "bus": {}, "seal": {}, "blob": {}, "egress": {}, "journal": {}, "hearing": {},
	"db":        {},
	"op":        {"access", "db"},
	"event":     {"db", "bus"},
	"job":       {"db", "bus"},
	"bridge":    {},
	"sip":       {},
	"smpp":      {},
	"stir":      {},
	"media":     {},
	"robot":     {"sip", "media"},
	"ai":        append([]string{"transcript", "memory", "media", "assistant"}, foundations...),
	"carrier":   append([]string{"number", "org"}, foundations...),
	"pbx":       append([]string{"call", "sip", "media", "carrier", "device", "number", "org", "user", "transcript", "stir"}, foundations...),
	"rest":      {"op", "access", "auth", "db"},
	"mcp":       {"op", "access", "db"},
	"assistant": append([]string{"media"}, foundations...),
	"attendant": append([]string{"assistant", "pbx", "flow", "queue", "agent", "voicemail", "call", "contact", "media", "number", "org", "user", "sms"},
		foundations...),
}

// TestImportsPointDown reads every import of ours and names those that point the wrong way.
func TestImportsPointDown(t *testing.T) {
	seen := 0
	walk(t, func(path string) {
		room, _, nested := strings.Cut(filepath.ToSlash(path), "/")
		if !nested || room == "e2e" || strings.HasSuffix(path, "_test.go") {
			return
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range f.Imports {
			name, _ := strconv.Unquote(i.Path.Value)
			target, ours := strings.CutPrefix(name, "soniq/")
			if !ours {
				continue
			}
			target, _, _ = strings.Cut(target, "/")
			seen++
			if target != room && !allowed(t, room, target) {
				t.Errorf("%s imports %s: %s must not know %s", path, name, room, target)
			}
		}
	})
	if seen < 50 {
		t.Errorf("only %d imports seen: is this test looking at the right folder?", seen)
	}
}

func allowed(t *testing.T, room, target string) bool {
	may, known := others[room]
	if feature, ok := features[room]; ok {
		may, known = append(append([]string{}, foundations...), feature...), true
	}
	if !known {
		t.Errorf("room %s is not on the map in arch_test.go", room)
		return true
	}
	for _, m := range may {
		if m == target {
			return true
		}
	}
	return false
}

// walk visits the Go files of the tree.
func walk(t *testing.T, visit func(path string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || path == "build" || strings.HasPrefix(d.Name(), ".") && path != ".") {
			return fs.SkipDir
		}
		if strings.HasSuffix(path, ".go") {
			visit(path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
