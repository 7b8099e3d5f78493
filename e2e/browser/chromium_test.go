package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// chromium is a headless browser with one page, driven by the DevTools protocol.
type chromium struct {
	t       *testing.T
	address string // of the browser's DevTools
	conn    *websocket.Conn

	mu      sync.Mutex // guards the fields below
	next    int
	waiting map[int]chan reply
	told    []reply // events of the browser, in the domains that command has enabled
}

// reply is a message of the browser: the result of a request, or an event, which has a method.
type reply struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result struct {
		Result struct {
			Value       json.RawMessage `json:"value"`
			Description string          `json:"description"`
		} `json:"result"`
		Nodes []struct { // of the accessibility tree
			BackendDOMNodeID int `json:"backendDOMNodeId"`
			Ignored          bool
			Name             struct{ Value string }
		} `json:"nodes"`
		Root      struct{ NodeID int }      `json:"root"`
		Object    struct{ ObjectID string } `json:"object"`
		Data      string                    `json:"data"` // a picture
		Exception *struct {
			Text      string `json:"text"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	} `json:"result"`
	Error *struct{ Message string } `json:"error"`
}

// costlyFeatures are parts of Chromium that no test uses and that take half of the CPU time of its start or more: pages of the
// address bar and renderers in reserve.
const costlyFeatures = "WebUIOmniboxPopup,WebUIOmniboxAimPopup,WebUIOmniboxFullPopup,SpareRendererForSitePerProcess,PreloadTopChromeWebUI"

// startTime is the time limit for the start of a browser on a busy machine.
var startTime = limit.Hang(0)

// open starts a browser whose microphone plays a WAV file, and opens a page. Without a file it has no microphone. flags are added to its
// command line.
func open(t *testing.T, wav, url string, flags ...string) *chromium {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("no chromium: scripts/setup test installs it")
	}
	if wav != "" {
		flags = append(flags, "--use-fake-device-for-media-stream", "--use-file-for-fake-audio-capture="+wav)
	}
	command := exec.Command(path, append(flags, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-port=0", "--user-data-dir="+t.TempDir(),
		"--use-fake-ui-for-media-stream", "--disable-extensions", "--disable-features="+costlyFeatures,
		"--autoplay-policy=no-user-gesture-required", "--allow-loopback-in-peer-connection", "--ignore-certificate-errors", url)...)
	address, _, _ := strings.Cut(launchBrowser(t, command, t.TempDir(), "DevTools listening on ws://"), "/")
	c := &chromium{t: t, address: address, waiting: map[int]chan reply{}}
	c.attach(url)
	return c
}

// launchBrowser starts a browser, which ends with the test, and returns the address that follows a text on its standard error.
func launchBrowser(t *testing.T, command *exec.Cmd, home, text string) (address string) {
	t.Helper()
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Env = append(os.Environ(), "HOME="+home)
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
	found := make(chan string, 1)
	go func() { // ends with the browser
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if _, at, ok := strings.Cut(lines.Text(), text); ok {
				found <- at
			}
		}
	}()
	select {
	case address = <-found:
	case <-time.After(startTime):
		t.Fatalf("%s did not start", command.Path)
	}
	return address
}

// attach connects to the page that shows url.
func (c *chromium) attach(url string) {
	c.t.Helper()
	var page string
	client := http.Client{Timeout: startTime}
	until(c.t, "the page", startTime, func() bool {
		r, err := client.Get("http://" + c.address + "/json/list")
		if err != nil {
			return false
		}
		defer r.Body.Close()
		var list []struct{ Type, URL, WebSocketDebuggerURL string }
		_ = json.NewDecoder(r.Body).Decode(&list)
		for _, p := range list {
			if p.Type == "page" && strings.HasPrefix(p.URL, url) {
				page = p.WebSocketDebuggerURL
			}
		}
		return page != ""
	})
	ctx, cancel := context.WithTimeout(c.t.Context(), limit.Hang(0))
	defer cancel()
	conn, _, err := websocket.Dial(ctx, page, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	conn.SetReadLimit(16 << 20)
	c.conn = conn
	c.t.Cleanup(func() { _ = conn.CloseNow() })
	go c.read()
	until(c.t, "the page's script", startTime, func() bool {
		var state string
		return c.try(&state, "location.protocol + document.readyState") == nil && state == "http:complete"
	})
}

// read distributes replies until the connection ends.
func (c *chromium) read() {
	for {
		_, b, err := c.conn.Read(context.Background())
		if err != nil {
			return
		}
		var r reply
		if json.Unmarshal(b, &r) != nil {
			continue
		}
		c.mu.Lock()
		if r.Method != "" {
			c.told = append(c.told, r)
		}
		if w := c.waiting[r.ID]; w != nil {
			delete(c.waiting, r.ID)
			w <- r
		}
		c.mu.Unlock()
	}
}

// eval evaluates an expression on the page, waits for its promise, and reads the value into out.
func (c *chromium) eval(out any, format string, args ...any) {
	c.t.Helper()
	if err := c.try(out, fmt.Sprintf(format, args...)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *chromium) try(out any, expression string) error {
	r, err := c.command("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true})
	if err != nil {
		return fmt.Errorf("%s: %w", expression, err)
	}
	return r.read(out, expression)
}

// command sends a DevTools command and waits for its result.
func (c *chromium) command(method string, params map[string]any) (r reply, err error) {
	c.mu.Lock()
	c.next++
	id, w := c.next, make(chan reply, 1)
	c.waiting[id] = w
	c.mu.Unlock()
	b, err := json.Marshal(map[string]any{"id": id, "method": method, "params": params})
	if err != nil {
		return r, err
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), limit.Hang(0))
	defer cancel()
	if err := c.conn.Write(ctx, websocket.MessageText, b); err != nil {
		return r, fmt.Errorf("ask the browser: %w", err)
	}
	select {
	case r = <-w:
		return r, nil
	case <-ctx.Done():
		return r, fmt.Errorf("the browser does not answer to %s", method)
	}
}

func (r reply) read(out any, expression string) error {
	switch {
	case r.Error != nil:
		return fmt.Errorf("%s: %s", expression, r.Error.Message)
	case r.Result.Exception != nil:
		return fmt.Errorf("%s: %s %s", expression, r.Result.Exception.Text, r.Result.Exception.Exception.Description)
	case out == nil:
		return nil
	}
	return json.Unmarshal(r.Result.Result.Value, out)
}

// quoted returns a string as a JavaScript literal.
func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// until waits for a condition that has no event of its own.
func until(t *testing.T, what string, limit time.Duration, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(limit); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v for %s", limit, what)
		}
	}
}
