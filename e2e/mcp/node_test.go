package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"soniq/e2e/rig"
)

func TestTypeScriptClients_EveryTransport(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{})
	org := s.Org("live")
	c := exec.Command("node", "assistant.mjs", address(s))
	c.Dir = filepath.Join(rig.Root(), "e2e", "node")
	c.Env = append(os.Environ(), "SONIQ_API_KEY="+org.Key)
	out := run(t, c)
	ways := strings.Split(strings.TrimSpace(out), "\n")
	if len(ways) != 5 {
		t.Errorf("%d ways: %s", len(ways), out)
	}
	for _, way := range ways {
		var found struct {
			Way   string
			Tools int
			Live  struct{ Calls []any }
			Wrong bool
		}
		if err := json.Unmarshal([]byte(way), &found); err != nil || found.Tools != len(published) || found.Live.Calls == nil ||
			!found.Wrong {
			t.Errorf("%v: %s", err, way)
		}
	}
}

// run runs a program to its end, and returns its output.
func run(t *testing.T, c *exec.Cmd) string {
	t.Helper()
	var out, wrong bytes.Buffer
	c.Stdout, c.Stderr = &out, &wrong
	if err := rig.Launch(c); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Fatalf("%s: %v\n%s\n%s", c, err, out.String(), wrong.String())
	}
	return out.String()
}

// installed returns the bridge, installed by npm from its packed tarball.
func installed(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	pack := exec.Command("npm", "pack", "--pack-destination", dir, filepath.Join(rig.Root(), "sdk", "mcp"))
	name := strings.Fields(run(t, pack))
	install := exec.Command("npm", "install", "--offline", "--no-audit", "--no-fund", "--prefix", dir, filepath.Join(dir, name[len(name)-1]))
	run(t, install)
	return filepath.Join(dir, "node_modules", ".bin", "soniq-mcp")
}

func TestBridge_ToolsOverStdio(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{})
	org := s.Org("live")
	binary, err := rig.CommandBinary()
	if err != nil {
		t.Fatal(err)
	}
	npm := installed(t)
	for name, words := range map[string][]string{"soniq-mcp": {npm}, "soniq mcp": {binary, "mcp"}} {
		command := func(more ...string) *exec.Cmd {
			c := exec.Command(words[0], append(append(append([]string{}, words[1:]...), "--url", address(s)), more...)...)
			c.Env = append(os.Environ(), "SONIQ_API_KEY="+org.Key)
			return c
		}
		t.Run(name, func(t *testing.T) {
			a := over(t, command())
			a.want("get_live_calls", nil)
			if code := a.refused("get_call_detail", map[string]any{"call_id": "call_none"}); code != "not_found" {
				t.Errorf("a call that is not there: %s", code)
			}
			asks(t, command())
			reading := over(t, command("--read-only"))
			if len(reading.schemas) != 14 {
				t.Errorf("--read-only shows %d tools", len(reading.schemas))
			}
			if _, err := reading.call("make_call", map[string]any{"to": "+12025550123"}); err == nil {
				t.Error("--read-only let a call be placed")
			}
		})
	}
	status := exec.Command(npm, "doctor", "--url", address(s))
	status.Env = append(os.Environ(), "SONIQ_API_KEY="+org.Key)
	if out := run(t, status); !strings.Contains(out, "24 tools") || strings.Contains(out, "FAIL") {
		t.Errorf("doctor: %s", out)
	}
}

// over connects an assistant through a program that uses standard input and output (stdio transport).
func over(t *testing.T, c *exec.Cmd) *assistant {
	t.Helper()
	return through(t, piped(t, c), nil)
}

// piped starts a program and returns a transport over its standard input and output. The program ends with the
// transport.
func piped(t *testing.T, c *exec.Cmd) sdk.Transport {
	t.Helper()
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
	t.Cleanup(func() {
		_ = in.Close()
		_ = c.Wait()
	})
	return &sdk.IOTransport{Reader: out, Writer: in}
}

// asks checks that a confirmation request of the server reaches the user, and that declining it refuses the tool
// call.
func asks(t *testing.T, c *exec.Cmd) {
	t.Helper()
	var asked string
	decline := func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
		asked = r.Params.Message
		return &sdk.ElicitResult{Action: "decline"}, nil
	}
	a := through(t, piped(t, c), &sdk.ClientOptions{ElicitationHandler: decline})
	if code := a.refused("make_call", map[string]any{"to": "+12025550123"}); code != "declined" || asked == "" {
		t.Errorf("a call the person declined: %s, asked %q", code, asked)
	}
}
