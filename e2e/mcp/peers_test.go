package mcp_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// inspector returns the command line of the protocol's own Inspector. Its home is an empty folder, so that it neither
// finds nor leaves files.
func inspector(t *testing.T, c *rig.Client, args ...string) *exec.Cmd {
	t.Helper()
	return stranger(t, c.Server, append([]string{"--header", "Authorization: Bearer " + c.Key}, args...)...)
}

// stranger returns the Inspector without a credential.
func stranger(t *testing.T, s *rig.Server, args ...string) *exec.Cmd {
	t.Helper()
	cmd := script(t, "@modelcontextprotocol/inspector/clients/launcher/build/index.js", append([]string{"--cli", address(s), "--connect-timeout", "120000"}, args...)...)
	cmd.Env = append(cmd.Env, "HOME="+t.TempDir(), "BROWSER=true", "MCP_AUTO_OPEN_ENABLED=true")
	return cmd
}

// prompt collects the output of a program, and passes the first login address in it to open.
type prompt struct {
	mu   sync.Mutex
	text bytes.Buffer
	open func(address string)
}

var loginAt = regexp.MustCompile(`http://[^\s"]+/auth/oauth/authorize\?\S+\s`)

func (p *prompt) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text.Write(b)
	if at := loginAt.Find(p.text.Bytes()); at != nil && p.open != nil {
		go p.open(strings.TrimSpace(string(at)))
		p.open = nil
	}
	return len(b), nil
}

// TestInspector_Login proves that the Inspector can register itself, get the user's consent, and use a tool.
func TestInspector_Login(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{})
	ada := signedIn(t, s)
	for _, way := range [][]string{{"--transport", "sse"}, {"--transport", "http"}, {"--transport", "http", "--protocol-era", "modern"}} {
		c := stranger(t, s, append(way, "--callback-url", "http://127.0.0.1:"+free(t)+"/oauth/callback", "--method", "tools/call", "--tool-name", "get_live_calls")...)
		said := &prompt{open: func(at string) { ada.letsIn(at) }}
		c.Stdout, c.Stderr = said, said
		if err := rig.Launch(c); err != nil {
			t.Fatal(err)
		}
		stop := time.AfterFunc(limit.Hang(0), func() { _ = c.Process.Kill() })
		if err := c.Wait(); err != nil || !strings.Contains(said.text.String(), `"structuredContent"`) {
			t.Errorf("%v: %v\n%s", way, err, said.text.String())
		}
		stop.Stop()
	}
}

func TestInspector_Tools(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{})
	org := s.Org("live")
	for _, way := range [][]string{{"--transport", "sse"}, {"--transport", "http"}, {"--transport", "http", "--protocol-era", "modern"}} {
		var list struct{ Tools []struct{ Name string } }
		out := run(t, inspector(t, org, append(way, "--method", "tools/list", "--strict")...))
		if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Tools) != len(published) {
			t.Errorf("%v: %v, %d tools: %.500s", way, err, len(list.Tools), out)
		}
		if out := run(t, inspector(t, org, append(way, "--method", "tools/call", "--tool-name", "get_live_calls")...)); !strings.Contains(out, `"structuredContent"`) {
			t.Errorf("%v: %s", way, out)
		}
	}
}

// TestRedocly_DescriptionOfTools lets redocly describe the tools of the server twice. Both descriptions are the same.
func TestRedocly_DescriptionOfTools(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{})
	org := s.Org("live")
	file := filepath.Join(t.TempDir(), "tools.yaml")
	ask := func(more ...string) *exec.Cmd {
		return script(t, "@redocly/cli/bin/cli.js", append([]string{"introspect-mcp", address(s), "-H", "Authorization: Bearer " + org.Key, "-o", file}, more...)...)
	}
	run(t, ask())
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range published {
		if !strings.Contains(string(text), tool[0]) {
			t.Errorf("%s is not described", tool[0])
		}
	}
	run(t, ask("--check"))
}

// TestMCPRemote_Login connects as many desktop clients do: through the npm package mcp-remote. It registers itself,
// gets the user's consent, and uses standard input and output.
func TestMCPRemote_Login(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{})
	ada := signedIn(t, s)
	for _, transport := range []string{"http-only", "sse-only"} {
		home := t.TempDir()
		c := script(t, "mcp-remote/dist/proxy.js", address(s), free(t), "--transport", transport, "--allow-http", "--host", "127.0.0.1")
		c.Env = append(c.Env, "HOME="+home, "MCP_REMOTE_CONFIG_DIR="+home, "BROWSER=true")
		told, err := c.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		heard := make(chan struct{})
		go func() {
			defer close(heard)
			lines := bufio.NewScanner(told)
			lines.Buffer(nil, 1<<20)
			for lines.Scan() {
				t.Log(lines.Text())
				if at := strings.Index(lines.Text(), "http://"+s.HTTP+"/auth/oauth/authorize?"); at >= 0 {
					ada.letsIn(strings.TrimSpace(lines.Text()[at:]))
				}
			}
		}()
		t.Cleanup(func() { <-heard })
		a := through(t, piped(t, c), nil)
		if got := shown(a); len(got) != len(of("calls:read", "contacts:read", "memory:read")) {
			t.Errorf("%s: shown %v", transport, got)
		}
		a.want("get_live_calls", nil)
		_ = a.session.Close()
		_ = c.Process.Kill()
		<-heard
	}
}

// TestTypeScriptClients_Login proves that both official clients can register, get the user's consent, and use their
// tokens.
func TestTypeScriptClients_Login(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{})
	ada := signedIn(t, s)
	c := exec.Command("node", "assistant_login.mjs", address(s))
	c.Dir = filepath.Join(rig.Root(), "e2e", "node")
	var wrong bytes.Buffer
	c.Stderr = &wrong
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := rig.Launch(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() })
	var ways []string
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var said struct {
			Open, Way string
			Refused   bool
			Tools     []string
			Live      struct{ Calls []any }
		}
		if err := json.Unmarshal(lines.Bytes(), &said); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		if said.Open != "" {
			if _, err := io.WriteString(in, ada.agrees(said.Open)+"\n"); err != nil {
				t.Fatal(err)
			}
			continue
		}
		ways = append(ways, said.Way)
		if !said.Refused || said.Live.Calls == nil || !slices.Equal(said.Tools, of("calls:read", "contacts:read", "memory:read")) {
			t.Errorf("%s", lines.Text())
		}
	}
	if err := c.Wait(); err != nil || len(ways) != 5 {
		t.Errorf("%v after %q: %s", err, ways, wrong.String())
	}
}
