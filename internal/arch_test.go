// Package internal_test checks rules that hold for the whole tree: which package may import which, and how SQL statements name tenants.
package internal_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "soniq/"

// conformance has the tools that the official MCP suite calls. The server imports it only if it is built with the tag conformance.
const conformance = "e2e/mcp/everything"

// wings lists the wings from the top down. A package may import packages of the wings below its own.
var wings = []string{"cmd", "cli", "server", "config", "sandbox", "api", "contactcenter", "customer", "intelligence", "messaging", "telephony",
	"identity", "control", "protocol", "platform"}

// limited lists the wings that may import only some of the wings below them. Every entry must be in use.
var limited = map[string][]string{
	"cmd/soniq":   {"cli"},
	"cmd/mandocs": {"cli"},
	"cmd":         {"intelligence", "platform"}, // trainmodels makes data files of the speech engine, apiviewer fetches an npm package
	"api":         {"platform"},
	"identity":    {"platform"},
	"control":     {},
	"protocol":    {},
	"platform":    {},
}

// beside lists the imports between packages of one wing. Every entry must be in use.
var beside = map[string][]string{
	"cli":                      {"command", "demo", "mcpbridge", "remote"},
	"cli/remote":               {"command"},
	"server":                   {"backup", "clocktrust", "datadir", "gctuning", "httplimit", "installation", "readiness", "restored"},
	"server/backup":            {"datadir", "installation", "restored"},
	"server/clocktrust":        {"datadir"},
	"platform/audit":           {"access", "db", "op"},
	"platform/cluster":         {"bus", "db"},
	"platform/event":           {"access", "bus", "clock", "db", "personal"},
	"platform/job":             {"bus", "clock", "db"},
	"platform/mail":            {"clock", "db"},
	"platform/op":              {"access", "clock", "db", "limit", "strictjson"},
	"platform/personal":        {"db"},
	"platform/visibility":      {"access", "db"},
	"identity/auth":            {"org"},
	"identity/partner":         {"auth", "org", "user"},
	"identity/signin":          {"auth", "org", "user"},
	"identity/user":            {"org"},
	"sandbox/testparty":        {"sandbox", "softphone"},
	"telephony/call":           {"number"},
	"telephony/directory":      {"device", "number", "pbx", "trunk", "trunkreg"},
	"telephony/pbx":            {"call", "number", "trunk"},
	"telephony/provisioning":   {"device"},
	"telephony/trunk":          {"number"},
	"telephony/trunkreg":       {"trunk"},
	"telephony/voicemail":      {"number"},
	"messaging/smppserver":     {"sms"},
	"messaging/sipmessage":     {"sms"},
	"messaging/smscarrier":     {"sms"},
	"intelligence/engine":      {"language", "memory", "transcript", "voiceagent"},
	"intelligence/transcript":  {"language", "memory"},
	"customer/crm":             {"contact"},
	"contactcenter/analytics":  {"queue"},
	"contactcenter/phonestate": {"agent"},
	"contactcenter/queue":      {"agent"},
	"contactcenter/routing":    {"agent", "flow", "queue"},
}

// embedding lists the files of the CLI that run a server in their own process, or open a data folder that no server uses. All other
// commands use the public API or the control socket.
var embedding = []string{"internal/cli/serve.go", "internal/cli/admin.go", "internal/cli/demo/demo.go", "internal/cli/migrate.go",
	"internal/cli/doctor_database.go", "internal/cli/backup_verify.go"}

// A site is a package's place in the tree: its wing, and its name inside the wing. Sub-packages count as part of their package.
type site struct{ wing, name string }

func (s site) String() string { return strings.TrimSuffix(s.wing+"/"+s.name, "/") }

// siteOf returns the place of a folder such as internal/telephony/pbx.
func siteOf(dir string) site {
	parts := strings.Split(strings.TrimPrefix(filepath.ToSlash(dir), "internal/"), "/")
	if len(parts) == 1 {
		return site{wing: parts[0]}
	}
	return site{parts[0], parts[1]}
}

// TestImports_PointDownwards reports the imports of our own packages that the tables above do not allow. It also reports entries of the
// tables that no import needs.
func TestImports_PointDownwards(t *testing.T) {
	used := map[string]bool{}
	seen := 0
	walk(t, func(path string) {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "e2e/") {
			return
		}
		from := siteOf(filepath.Dir(path))
		for _, target := range imports(t, path) {
			seen++
			to := siteOf(target)
			if from.wing == "cli" && to.wing == "server" && !slices.Contains(embedding, path) {
				t.Errorf("%s imports the server: use the public API or the control socket", path)
			}
			if from != to && !allowed(from, to, used) {
				t.Errorf("%s imports %s: %s must not import %s", path, target, from, to)
			}
		}
	})
	if seen < 500 {
		t.Errorf("only %d imports were found: does the test read the right folder?", seen)
	}
	for from, all := range limited {
		for _, to := range all {
			if !used[from+" "+to] {
				t.Errorf("limited: nothing in %s imports %s; remove the entry", from, to)
			}
		}
	}
	for from, all := range beside {
		for _, to := range all {
			if !used[from+" "+to] {
				t.Errorf("beside: %s does not import %s; remove the entry", from, to)
			}
		}
	}
}

// sipLayers lists which packages of protocol/sip each one may import. protocol/sip itself is above all.
var sipLayers = map[string][]string{
	"sipmsg":    {},
	"guard":     {},
	"resolve":   {"sipmsg"},
	"digest":    {"sipmsg"},
	"transport": {"guard", "sipmsg"},
}

// TestImports_SIPLayers reports imports between the packages of protocol/sip that the table does not allow, and entries that no import
// needs.
func TestImports_SIPLayers(t *testing.T) {
	const root = "internal/protocol/sip"
	used := map[string]bool{}
	walk(t, func(path string) {
		from, inside := strings.CutPrefix(filepath.ToSlash(filepath.Dir(path)), root+"/")
		if !inside || strings.HasSuffix(path, "_test.go") || strings.Contains(from, "testdata") {
			return
		}
		may, listed := sipLayers[from]
		if !listed {
			t.Errorf("%s: sipLayers has no entry for %s", path, from)
		}
		for _, target := range imports(t, path) {
			to, ours := strings.CutPrefix(target, root)
			if !ours {
				continue
			}
			to = strings.TrimPrefix(to, "/")
			used[from+" "+to] = true
			if !slices.Contains(may, to) {
				t.Errorf("%s imports %s", path, target)
			}
		}
	})
	for from, all := range sipLayers {
		for _, to := range all {
			if !used[from+" "+to] {
				t.Errorf("sipLayers: %s does not import %s; remove the entry", from, to)
			}
		}
	}
}

// allowed reports whether a package may import another, and marks the table entry that says so as used.
func allowed(from, to site, used map[string]bool) bool {
	if from.wing == to.wing {
		used[from.String()+" "+to.name] = true
		return slices.Contains(beside[from.String()], to.name)
	}
	rule := from.wing
	if _, ok := limited[from.String()]; ok {
		rule = from.String()
	}
	if some, ok := limited[rule]; ok {
		used[rule+" "+to.wing] = true
		return slices.Contains(some, to.wing)
	}
	above, below := slices.Index(wings, from.wing), slices.Index(wings, to.wing)
	return above >= 0 && below > above
}

// imports returns the folders of our own packages that a file imports.
func imports(t *testing.T, path string) (dirs []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", path), nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range f.Imports {
		name, _ := strconv.Unquote(i.Path.Value)
		if dir, ours := strings.CutPrefix(name, module); ours && dir != conformance {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// walk calls visit with the path of every Go file of the repository, relative to its root.
func walk(t *testing.T, visit func(path string)) {
	t.Helper()
	root := ".."
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || rel == "build" || strings.HasPrefix(d.Name(), ".") && rel != ".") {
			return fs.SkipDir
		}
		if strings.HasSuffix(rel, ".go") {
			visit(filepath.ToSlash(rel))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
