package contract_test

import (
	"os"
	"path/filepath"
	"testing"

	"soniq/e2e/rig"
)

// The sources of the web console fit the types of the description, of the client and of the packages of its lock file.
func TestConsole_Types(t *testing.T) {
	t.Parallel()
	run(t, rig.Root(), []string{"CGO_ENABLED=0"}, "go", "run", "-trimpath", "./cmd/consolebuild", "--types")
	folder := t.TempDir()
	client, app := filepath.Join("sdk", "typescript"), filepath.Join("internal", "api", "console", "app")
	for _, part := range []string{client, app} {
		if err := os.CopyFS(filepath.Join(folder, part), os.DirFS(filepath.Join(rig.Root(), part))); err != nil {
			t.Fatal(err)
		}
	}
	packages := filepath.Join("build", "console")
	if err := os.MkdirAll(filepath.Join(folder, packages), 0o755); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{
		filepath.Join(rig.Root(), packages, "node_modules"): filepath.Join(folder, packages, "node_modules"),
		modules(): filepath.Join(folder, client, "node_modules"),
	} {
		_ = os.Remove(to)
		if err := os.Symlink(from, to); err != nil {
			t.Fatal(err)
		}
	}
	run(t, filepath.Join(folder, client), nil, "node", "generate.mjs", description())
	if said, err := tool(t, folder, "tsc", "-p", app); err != nil {
		t.Errorf("the console does not fit its types: %v\n%s", err, said)
	}
}
