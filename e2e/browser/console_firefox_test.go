package browser

import (
	_ "embed"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"soniq/e2e/limit"
)

//go:embed recorded.js
var recordedJS string

// goTo opens an address of the console, and waits until its page is loaded.
func (f *firefox) goTo(path string) {
	f.t.Helper()
	f.navigate(f.base + path)
}

func (f *firefox) navigate(address string) {
	f.t.Helper()
	f.command("browsingContext.navigate", map[string]any{"context": f.page, "url": address, "wait": "complete"}, nil)
}

// checked does nothing: the journey in Chromium checks the pages at all sizes and in both themes.
func (f *firefox) checked(string) {}

// node is an element of a page.
type node struct {
	ID string `json:"sharedId"`
}

// nodes returns the elements with a role and a name, as screen readers find them; any name if it is "".
func (f *firefox) nodes(role, name string) []node {
	value := map[string]any{"role": role}
	if name != "" {
		value["name"] = name
	}
	var found struct{ Nodes []node }
	if f.try("browsingContext.locateNodes", map[string]any{"context": f.page,
		"locator": map[string]any{"type": "accessibility", "value": value}}, &found) != nil {
		return nil // the page is being left
	}
	return found.Nodes
}

// waitFor waits for an element.
func (f *firefox) waitFor(role, name string) {
	f.t.Helper()
	f.find(role, name)
}

// find waits for an element, and returns it.
func (f *firefox) find(role, name string) (found node) {
	f.t.Helper()
	before := f.t.Failed()
	defer func() {
		if f.t.Failed() && !before {
			var text string
			_ = f.evaluate(&text, "location.href + ' ' + document.body.innerText")
			f.t.Logf("the page: %s", text)
		}
	}()
	until(f.t, role+" "+name, pageTime, func() bool {
		all := f.nodes(role, name)
		if len(all) > 0 {
			found = all[0]
		}
		return len(all) > 0
	})
	return found
}

// hasNot waits until there is no such element.
func (f *firefox) hasNot(role, name string) {
	f.t.Helper()
	until(f.t, "no "+role+" "+name, pageTime, func() bool { return len(f.nodes(role, name)) == 0 })
}

// click clicks an element. It tries again if the element was replaced meanwhile.
func (f *firefox) click(role, name string) {
	f.t.Helper()
	until(f.t, "a click on "+role+" "+name, pageTime, func() bool {
		at := map[string]any{"type": "pointerMove", "x": 0, "y": 0, "origin": map[string]any{"type": "element", "element": f.find(role, name)}}
		return f.act("pointer", at, map[string]any{"type": "pointerDown", "button": 0}, map[string]any{"type": "pointerUp", "button": 0}) == nil
	})
}

// act performs actions of one input source.
func (f *firefox) act(source string, actions ...map[string]any) error {
	return f.try("input.performActions", map[string]any{"context": f.page,
		"actions": []map[string]any{{"type": source, "id": source, "actions": actions}}}, nil)
}

// types clicks a field, and types a text.
func (f *firefox) types(role, name, text string) {
	f.t.Helper()
	f.click(role, name)
	var keys []map[string]any
	for _, r := range text {
		keys = append(keys, map[string]any{"type": "keyDown", "value": string(r)}, map[string]any{"type": "keyUp", "value": string(r)})
	}
	if err := f.act("key", keys...); err != nil {
		f.t.Fatal(err)
	}
}

// shows waits for texts on the page.
func (f *firefox) shows(texts ...string) {
	f.t.Helper()
	for _, text := range texts {
		var page string
		until(f.t, text+" on the page", pageTime, func() bool {
			return f.evaluate(&page, "document.body.innerText") == nil && strings.Contains(page, text)
		})
	}
}

// hears waits until the page hears a tone.
func (f *firefox) hears(hz float64) {
	f.t.Helper()
	var heard float64
	defer func() {
		if f.t.Failed() {
			f.t.Logf("Firefox hears %.0f Hz", heard)
		}
	}()
	until(f.t, fmt.Sprintf("%.0f Hz in Firefox", hz), pageTime, func() bool {
		return f.evaluate(&heard, "window.heard()") == nil && heard > hz*0.95 && heard < hz*1.05
	})
}

// welcomeFirefox opens the link of an invitation in a Firefox, chooses a password, and opens a path of the console.
func welcomeFirefox(t *testing.T, base, link, path string, hz int) *firefox {
	t.Helper()
	f := openFirefox(t, base, hz)
	f.command("script.addPreloadScript", map[string]any{"functionDeclaration": "() => {" + recordedJS + "}"}, nil)
	f.navigate(link)
	for _, id := range []string{"password", "again"} {
		f.eval(nil, "void (document.getElementById(%s).value = %s)", quoted(id), quoted(consolePassword))
	}
	f.click("button", "Keep it and sign in")
	f.waitFor("button", "Sign out")
	f.goTo(path)
	return f
}

// networkAddress returns an IPv4 address of this machine that is not of the loopback interface.
func networkAddress(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && !p.Addr().IsLoopback() {
			return p.Addr().String()
		}
	}
	t.Skip("this machine has no address but those of the loopback interface; calls in Firefox need one")
	return ""
}

// TestConsole_EmptyServerToFirstCallInFirefox is TestConsole_EmptyServerToFirstCall with two Firefoxes. The audio goes over an address of a
// network card, because Firefox offers none of the loopback interface.
//
// https://github.com/ringcentral/ringcentral-embeddable/issues/343
func TestConsole_EmptyServerToFirstCallInFirefox(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 4*time.Minute, "two browsers set a server up and call each other; the words are recognised")
	base, invitation := startEmptyServer(t, "--sip", networkAddress(t)+":0")
	firstCall(t, welcomeFirefox(t, base, invitation, "/console/", 440), func(link string) journeyPage {
		return welcomeFirefox(t, base, link, "/console/desk", 1000)
	})
}
