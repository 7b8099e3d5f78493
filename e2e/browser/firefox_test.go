package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"soniq/e2e/limit"
)

// firefox is a headless Firefox with one page, driven by WebDriver BiDi (W3C).
type firefox struct {
	t    *testing.T
	base string // of the server whose pages it opens
	page string // id of the browsing context
	conn *websocket.Conn

	mu      sync.Mutex // guards the fields below
	next    int
	waiting map[int]chan bidiReply
}

// bidiReply is a result or an error of a command.
type bidiReply struct {
	ID      int             `json:"id"`
	Type    string          `json:"type"`
	Error   string          `json:"error"`
	Message string          `json:"message"`
	Result  json.RawMessage `json:"result"`
}

// firefoxSettings let a page without a person use the microphone, which sends one tone, and play sound.
const firefoxSettings = `user_pref("media.navigator.streams.fake", true);
user_pref("media.navigator.audio.fake_frequency", %d);
user_pref("media.navigator.permission.disabled", true);
user_pref("media.autoplay.default", 0);
user_pref("media.autoplay.blocking_policy", 0);
user_pref("media.peerconnection.ice.obfuscate_host_addresses", false);
user_pref("focusmanager.testmode", true);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("toolkit.telemetry.enabled", false);
user_pref("app.update.enabled", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("intl.accept_languages", "en-GB");
`

// openFirefox starts a Firefox whose microphone sends a tone.
func openFirefox(t *testing.T, base string, hz int) *firefox {
	t.Helper()
	path, err := exec.LookPath("firefox-esr")
	if err != nil {
		t.Fatal("no firefox-esr: scripts/setup test installs it")
	}
	profile := t.TempDir()
	if err := os.WriteFile(filepath.Join(profile, "user.js"), fmt.Appendf(nil, firefoxSettings, hz), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(path, "--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0", "about:blank")
	f := &firefox{t: t, base: base, waiting: map[int]chan bidiReply{}}
	f.connect(launchBrowser(t, command, profile, "WebDriver BiDi listening on "))
	return f
}

// connect begins a session and finds the page.
func (f *firefox) connect(address string) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), startTime)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, address+"/session", nil)
	if err != nil {
		f.t.Fatal(err)
	}
	conn.SetReadLimit(16 << 20)
	f.conn = conn
	f.t.Cleanup(func() { _ = conn.CloseNow() })
	go f.read()
	f.command("session.new", map[string]any{"capabilities": map[string]any{}}, nil)
	var tree struct{ Contexts []struct{ Context string } }
	f.command("browsingContext.getTree", map[string]any{}, &tree)
	f.page = tree.Contexts[0].Context
}

// read distributes replies until the connection ends.
func (f *firefox) read() {
	for {
		_, b, err := f.conn.Read(context.Background())
		if err != nil {
			return
		}
		var r bidiReply
		if json.Unmarshal(b, &r) != nil {
			continue
		}
		f.mu.Lock()
		if w := f.waiting[r.ID]; w != nil && r.Type != "event" {
			delete(f.waiting, r.ID)
			w <- r
		}
		f.mu.Unlock()
	}
}

// command sends a command and reads its result into out, unless out is nil.
func (f *firefox) command(method string, params map[string]any, out any) {
	f.t.Helper()
	if err := f.try(method, params, out); err != nil {
		f.t.Fatal(err)
	}
}

func (f *firefox) try(method string, params map[string]any, out any) error {
	f.mu.Lock()
	f.next++
	id, w := f.next, make(chan bidiReply, 1)
	f.waiting[id] = w
	f.mu.Unlock()
	b, err := json.Marshal(map[string]any{"id": id, "method": method, "params": params})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(f.t.Context(), limit.Hang(0))
	defer cancel()
	if err := f.conn.Write(ctx, websocket.MessageText, b); err != nil {
		return fmt.Errorf("ask Firefox: %w", err)
	}
	select {
	case r := <-w:
		if r.Type == "error" {
			return fmt.Errorf("%s: %s: %s", method, r.Error, r.Message)
		}
		if out == nil {
			return nil
		}
		return json.Unmarshal(r.Result, out)
	case <-ctx.Done():
		return fmt.Errorf("Firefox does not answer to %s", method)
	}
}

// evaluate evaluates an expression on the page, waits for its promise, and reads the value into out.
func (f *firefox) evaluate(out any, expression string) error {
	var r struct {
		Type             string
		Result           struct{ Value json.RawMessage }
		ExceptionDetails struct{ Text string }
	}
	err := f.try("script.evaluate", map[string]any{"expression": "(async () => JSON.stringify(await (" + expression + ")) ?? 'null')()",
		"target": map[string]any{"context": f.page}, "awaitPromise": true, "userActivation": true}, &r)
	if err != nil {
		return err
	}
	if r.Type != "success" {
		return fmt.Errorf("%s: %s", expression, r.ExceptionDetails.Text)
	}
	var text string
	if err := json.Unmarshal(r.Result.Value, &text); err != nil || out == nil {
		return err
	}
	return json.Unmarshal([]byte(text), out)
}

// eval is evaluate for expressions that succeed.
func (f *firefox) eval(out any, format string, args ...any) {
	f.t.Helper()
	if err := f.evaluate(out, fmt.Sprintf(format, args...)); err != nil {
		f.t.Fatal(err)
	}
}
