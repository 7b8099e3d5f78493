// Package contract_test checks the published artefacts (description, client, collection) with third-party tools, and
// against the running server.
package contract_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"soniq/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }

// description returns the copy of the API's description in the tree; another test keeps it current.
func description() string {
	return filepath.Join(rig.Root(), "internal", "api", "rest", "testdata", "openapi.json")
}

// tool runs a program of npm and returns its output.
func tool(t *testing.T, folder, name string, arguments ...string) (said string, err error) {
	t.Helper()
	rig.Admit(t, rig.Browser)
	modules := filepath.Join(rig.Root(), "e2e", "node", "node_modules")
	if _, err := os.Stat(filepath.Join(modules, ".bin", name)); err != nil {
		t.Skip("needs npm ci in e2e/node; scripts/setup test does it")
	}
	c := exec.Command(filepath.Join(modules, ".bin", name), arguments...)
	c.Dir = folder
	c.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true", "NO_COLOR=1")
	out, err := c.CombinedOutput()
	return string(out), err
}

// warned matches the count of warnings, because redocly exits with 0 if there are only warnings.
var warned = regexp.MustCompile(`\d+ warnings?`)

// The recommended rules of two linters find nothing in the description, warnings included. Each linter finds a
// deliberate fault.
func TestOpenAPI_LintersFindNothing(t *testing.T) {
	t.Parallel()
	linters := map[string][]string{
		"redocly":  {"lint", "--config", "redocly.yaml", "--max-problems", "20"},
		"spectral": {"lint", "--ruleset", "spectral.yaml", "--fail-severity", "warn"},
	}
	for name, arguments := range linters {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said, err := tool(t, ".", name, append(arguments, description())...)
			if err != nil || warned.MatchString(said) {
				t.Errorf("%s: %v\n%s", name, err, said)
			}
			if said, err := tool(t, ".", name, append(arguments, small(t, "id"))...); err != nil {
				t.Errorf("%s finds a fault in a small description that has none: %v\n%s", name, err, said)
			}
			if said, err := tool(t, ".", name, append(arguments, small(t, "other"))...); err == nil {
				t.Errorf("%s accepts a description whose path has a parameter that nothing declares: %s", name, said)
			}
		})
	}
}

// small writes a description of one operation. Its path has a parameter; the operation declares the parameter id.
func small(t *testing.T, parameter string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "openapi.json")
	text := strings.NewReplacer("{parameter}", "{"+parameter+"}", "\t", "  ").Replace(smallDescription) // a linter rejects tabs
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

const smallDescription = `{"openapi": "3.1.0",
	"info": {"title": "Small", "version": "1", "description": "One operation."},
	"servers": [{"url": "https://api.example.org"}],
	"tags": [{"name": "Agents", "description": "People who take calls."}],
	"security": [{"key": []}],
	"paths": {"/agents/{parameter}": {"get": {"operationId": "getAgent", "tags": ["Agents"], "summary": "Get", "description": "Returns an agent.",
		"parameters": [{"name": "id", "in": "path", "required": true, "description": "Id", "schema": {"type": "string"}}],
		"responses": {"200": {"description": "The agent"}, "404": {"description": "No such agent"}}}}},
	"components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}}}`
