package mcp_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"soniq/e2e/rig"
)

// modernNode returns a Node of the version that the newest tools of the protocol need. npm installs it beside them.
func modernNode(t testing.TB) string {
	t.Helper()
	found, _ := filepath.Glob(filepath.Join(rig.Root(), "e2e", "node", "node_modules", "node-linux-*", "bin", "node"))
	if len(found) == 0 {
		t.Fatal("no Node of npm: scripts/setup test installs it")
	}
	return found[0]
}

// script returns a program installed by npm, run by that Node.
func script(t testing.TB, path string, args ...string) *exec.Cmd {
	t.Helper()
	node := modernNode(t)
	c := exec.Command(node, append([]string{filepath.Join(rig.Root(), "e2e", "node", "node_modules", filepath.FromSlash(path))},
		args...)...)
	c.Env = append(os.Environ(), "PATH="+filepath.Dir(node)+string(os.PathListSeparator)+os.Getenv("PATH"))
	return c
}

// free returns an unused port.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	_ = l.Close()
	return port
}
