package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// firefox is a headless Firefox ESR with one page, driven by WebDriver BiDi. Its microphone plays a tone.
type firefox struct {
	t    *testing.T
	base string
	conn *websocket.Conn
	page string // id of the browsing context

	mu      sync.Mutex // guards the fields below
	next    int
	waiting map[int]chan bidiReply
	errors  []string // errors that the page has logged
}

// bidiReply is a message of Firefox: the result of a command, or an event, which has a method.
type bidiReply struct {
	ID      int             `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   string          `json:"error"`
	Message string          `json:"message"`
}

// firefoxSettings let the page use a microphone that plays a tone, and reach the server over the loopback.
const firefoxSettings = `user_pref("media.navigator.streams.fake", true);
user_pref("media.navigator.permission.disabled", true);
user_pref("media.navigator.audio.fake_frequency", %d);
user_pref("media.peerconnection.ice.loopback", true);
user_pref("media.autoplay.default", 0);
user_pref("media.cubeb.force_null_context", true);
user_pref("intl.accept_languages", "en-GB");
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("app.normandy.enabled", false);
`

// openFirefox starts a Firefox whose microphone plays a tone of hz.
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
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Env = append(os.Environ(), "HOME="+t.TempDir())
	stderr, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := rig.Launch(command); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		_ = command.Wait()
	})
	f := &firefox{t: t, base: base, waiting: map[int]chan bidiReply{}}
	f.connect(bufio.NewScanner(stderr))
	return f
}

// connect waits for the address of WebDriver BiDi in the output of Firefox, and begins a session.
func (f *firefox) connect(lines *bufio.Scanner) {
	f.t.Helper()
	found := make(chan string, 1)
	go func() { // ends with the browser
		for lines.Scan() {
			if _, address, ok := strings.Cut(lines.Text(), "WebDriver BiDi listening on "); ok {
				found <- address
			}
		}
	}()
	ctx, cancel := context.WithTimeout(f.t.Context(), startTime)
	defer cancel()
	select {
	case address := <-found:
		conn, _, err := websocket.Dial(ctx, address+"/session", nil)
		if err != nil {
			f.t.Fatal(err)
		}
		f.conn = conn
	case <-ctx.Done():
		f.t.Fatal("firefox did not start")
	}
	f.conn.SetReadLimit(16 << 20)
	f.t.Cleanup(func() { _ = f.conn.CloseNow() })
	go f.read()
	f.must("session.new", map[string]any{"capabilities": map[string]any{}}, nil)
	f.must("session.subscribe", map[string]any{"events": []string{"log.entryAdded"}}, nil)
	var tree struct{ Contexts []struct{ Context string } }
	f.must("browsingContext.getTree", map[string]any{}, &tree)
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
		var entry struct{ Level, Text string }
		f.mu.Lock()
		if r.Method == "log.entryAdded" && json.Unmarshal(r.Params, &entry) == nil && entry.Level == "error" {
			f.errors = append(f.errors, entry.Text)
		}
		if w := f.waiting[r.ID]; w != nil && r.Method == "" {
			delete(f.waiting, r.ID)
			w <- r
		}
		f.mu.Unlock()
	}
}

// command sends a command and reads its result into out.
func (f *firefox) command(method string, params map[string]any, out any) error {
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
		return fmt.Errorf("ask firefox: %w", err)
	}
	select {
	case r := <-w:
		if r.Error != "" {
			return fmt.Errorf("%s: %s: %s", method, r.Error, r.Message)
		}
		if out == nil {
			return nil
		}
		return json.Unmarshal(r.Result, out)
	case <-ctx.Done():
		return fmt.Errorf("firefox does not answer to %s", method)
	}
}

func (f *firefox) must(method string, params map[string]any, out any) {
	f.t.Helper()
	if err := f.command(method, params, out); err != nil {
		f.t.Fatal(err)
	}
}

// try evaluates an expression on the page, waits for its promise, and reads the value into out.
func (f *firefox) try(out any, expression string) error {
	var r struct {
		Result    struct{ Value string }
		Exception struct{ Text string } `json:"exceptionDetails"`
	}
	wrapped := "(async () => JSON.stringify(await (" + expression + ")) ?? 'null')()"
	err := f.command("script.evaluate", map[string]any{"expression": wrapped, "target": map[string]any{"context": f.page}, "awaitPromise": true,
		"userActivation": true}, &r)
	if err != nil || r.Exception.Text != "" {
		return errors.Join(err, errors.New(expression+": "+r.Exception.Text))
	}
	return json.Unmarshal([]byte(r.Result.Value), out)
}

// visit opens an address.
func (f *firefox) visit(address string) {
	f.t.Helper()
	f.must("browsingContext.navigate", map[string]any{"context": f.page, "url": address, "wait": "complete"}, nil)
}

// before runs a script in the pages that are opened next.
func (f *firefox) before(script string) {
	f.t.Helper()
	f.must("script.addPreloadScript", map[string]any{"functionDeclaration": "() => {" + script + "}"}, nil)
}

// has waits for an element with a role and a name, as screen readers find it, and returns it.
func (f *firefox) has(role, name string) (node map[string]any) {
	f.t.Helper()
	var found struct{ Nodes []struct{ SharedID string } }
	f.untilShown(role+" "+name, func() bool {
		err := f.command("browsingContext.locateNodes", map[string]any{"context": f.page,
			"locator": map[string]any{"type": "accessibility", "value": map[string]string{"role": role, "name": name}}}, &found)
		return err == nil && len(found.Nodes) > 0
	})
	return map[string]any{"sharedId": found.Nodes[0].SharedID}
}

// shows waits for texts on the page.
func (f *firefox) shows(texts ...string) {
	f.t.Helper()
	for _, text := range texts {
		var page string
		f.untilShown(text, func() bool { return f.try(&page, "document.body.innerText") == nil && strings.Contains(page, text) })
	}
}

// untilShown waits for a condition; if it does not come, the page's text is logged.
func (f *firefox) untilShown(what string, ok func() bool) {
	f.t.Helper()
	defer func() {
		if f.t.Failed() {
			var text string
			_ = f.try(&text, "location.href + ' ' + document.body.innerText")
			f.t.Logf("firefox shows %s; errors %q", text, f.errors)
		}
	}()
	until(f.t, what+" in Firefox", pageTime, ok)
}

// click waits for an element and clicks it with the mouse.
func (f *firefox) click(role, name string) {
	f.t.Helper()
	node := f.has(role, name)
	f.must("script.callFunction", map[string]any{"functionDeclaration": "(e) => e.scrollIntoView({block: 'center'})", "awaitPromise": true,
		"target": map[string]any{"context": f.page}, "arguments": []any{node}}, nil)
	at := map[string]any{"type": "pointerMove", "x": 0, "y": 0, "origin": map[string]any{"type": "element", "element": node}}
	f.act(map[string]any{"type": "pointer", "id": "mouse", "actions": []any{at, map[string]any{"type": "pointerDown", "button": 0},
		map[string]any{"type": "pointerUp", "button": 0}}})
}

// types clicks a field and types a text.
func (f *firefox) types(role, name, text string) {
	f.t.Helper()
	f.click(role, name)
	var keys []any
	for _, key := range text {
		keys = append(keys, map[string]any{"type": "keyDown", "value": string(key)}, map[string]any{"type": "keyUp", "value": string(key)})
	}
	f.act(map[string]any{"type": "key", "id": "keyboard", "actions": keys})
}

// fill sets the value of a field by its id.
func (f *firefox) fill(id, text string) {
	f.t.Helper()
	var done string
	if err := f.try(&done, "document.getElementById("+quoted(id)+").value = "+quoted(text)); err != nil {
		f.t.Fatal(err)
	}
}

func (f *firefox) act(source map[string]any) {
	f.t.Helper()
	f.must("input.performActions", map[string]any{"context": f.page, "actions": []any{source}}, nil)
}

// hears waits until the page hears a tone.
func (f *firefox) hears(hz float64) {
	f.t.Helper()
	var heard float64
	f.untilShown("a tone", func() bool { return f.try(&heard, "window.heard()") == nil && heard > hz*0.95 && heard < hz*1.05 })
}

// faultless fails for errors that the page has logged: exceptions, and reports of its policy.
func (f *firefox) faultless() {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, text := range f.errors {
		f.t.Errorf("Firefox reports: %s", text)
	}
}

// From an empty server to a first call, as in Chromium, with Firefox at one side: welcome link, password, Getting started, an invitation,
// and a call to Chromium, in which both hear the other. The page of the call has the recording.
func TestConsole_FirstCallInFirefox(t *testing.T) {
	limit.Budget(t, 3*time.Minute, "Firefox and Chromium set a server up and call each other")
	s := rig.Start(t, rig.Options{Load: rig.Browser, Flags: []string{"--transcriber", "off"}})
	base := "http://" + s.HTTP
	ada := openFirefox(t, base, 440)
	ada.before(heardJS)
	ada.visit(strings.TrimSpace(s.Command("admin", "users", "add", "ada@example.com", "--first-name", "Ada", "--last-name", "Lovelace")))
	ada.shows("Choose a password")
	ada.fill("password", consolePassword) // fields of passwords have no role of ARIA
	ada.fill("again", consolePassword)
	ada.click("button", "Keep it and sign in")
	ada.shows("owner of")
	ada.visit(base + "/console/")
	ada.has("heading", "Getting started")
	ada.click("button", "Use this browser as a phone")
	ada.shows("Phone ready")
	ada.types("textbox", "First name", "Grace")
	ada.types("textbox", "Last name", "Hopper")
	ada.types("textbox", "E-mail", "grace@example.com")
	ada.click("button", "Invite")
	ada.has("textbox", "Link of the invitation")
	var link string
	if err := ada.try(&link, `document.querySelector(".invited input").value`); err != nil {
		t.Fatal(err)
	}
	grace := welcome(t, base, link, "agent of", "/console/desk", "1000")
	grace.listens()
	grace.goTo("/console/desk")
	grace.click("button", "Turn on the phone")
	grace.has("button", "Phone ready")
	ada.click("button", "Call Grace Hopper")
	grace.shows("Ada Lovelace")
	grace.click("button", "Answer")
	ada.has("button", "Mute")
	grace.hears(440)
	ada.hears(1000)
	ada.click("button", "Hang up")
	grace.hasNot("button", "Hang up")
	ada.click("link", "Calls")
	ada.has("heading", "Calls")
	ada.shows("Grace Hopper")
	ada.faultless()
	grace.faultless()
}
