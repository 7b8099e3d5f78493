package browser

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// consolePage is the web console in a browser. Its elements are found by role and name, as screen readers find them.
type consolePage struct {
	*person
	watched bool
}

// consolePassword is the password of the users of the console.
const consolePassword = "correct horse battery"

// consoleFlags are the flags of a browser that reaches this machine alone, in English.
var consoleFlags = []string{"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--lang=en-GB", "--accept-lang=en-GB"}

// sharedServer returns a server without transcripts, which tests with the same flags and database share.
func sharedServer(t *testing.T, flags ...string) *rig.Server {
	t.Helper()
	return rig.Shared(t, rig.Options{DB: rig.EitherDB(t), Load: rig.Browser, Flags: append([]string{"--transcriber", "off"}, flags...)})
}

// newOffice adds an organisation to a server without transcripts.
func newOffice(t *testing.T) *fixture.Org {
	t.Helper()
	return fixture.NewOrg(sharedServer(t))
}

// openConsole adds a user with a role, who chooses a password by the invitation, and opens the console at a path. hz is the tone of the
// microphone; without one there is no microphone.
func openConsole(office *fixture.Org, role, path, hz string) (*consolePage, rig.User) {
	office.T.Helper()
	return invite(office, map[string]any{"first_name": "Dana", "last_name": "Reed", "role": role}, path, hz)
}

// colleague adds a user with a role and a name as openConsole does, without a telephone.
func colleague(office *fixture.Org, first, last, role, path, hz string) (*consolePage, rig.User) {
	office.T.Helper()
	return invite(office, map[string]any{"first_name": first, "last_name": last, "role": role, "provision_sip": false}, path, hz)
}

// invite adds a user with given fields. The user chooses a password by the invitation, in a browser of their own.
func invite(office *fixture.Org, user map[string]any, path, hz string) (*consolePage, rig.User) {
	t := office.T.(*testing.T)
	t.Helper()
	var made struct {
		rig.User
		Invitation struct{ URL string }
	}
	user["email"] = mailOf(t, fmt.Sprint(user["first_name"]))
	office.Want(201, "POST", "/users", user, &made)
	return welcome(t, "http://"+office.Server.HTTP, made.Invitation.URL, fmt.Sprint(user["role"], " of"), path, hz), made.User
}

// mailOf returns an e-mail address that no other test uses: organisations of a server may have people with the same address.
func mailOf(t *testing.T, first string) string {
	return strings.ToLower(first + "." + strings.ReplaceAll(t.Name(), "/", ".") + "@example.com")
}

// welcome opens the link of an invitation in a new browser, chooses a password, waits for a text, and opens the console at a path.
func welcome(t *testing.T, base, link, shown, path, hz string) *consolePage {
	t.Helper()
	microphone := ""
	if hz != "" {
		microphone = tone(t, hz)
	}
	p := &consolePage{person: &person{t: t, chromium: open(t, microphone, link, consoleFlags...), base: base}}
	p.choosePassword()
	p.person.shows(shown)
	p.watch()
	p.goTo(path)
	return p
}

// watch enables the events for errors and requests of the page.
func (p *consolePage) watch() {
	p.t.Helper()
	for _, domain := range []string{"Network", "Runtime", "Log", "Accessibility", "DOM", "Page"} {
		if _, err := p.command(domain+".enable", map[string]any{}); err != nil {
			p.t.Fatal(err)
		}
	}
	p.watched = true
}

// goTo opens an address of the console and waits until its page is there.
func (p *consolePage) goTo(path string) {
	p.t.Helper()
	if _, err := p.command("Page.navigate", map[string]any{"url": p.base + path}); err != nil {
		p.t.Fatal(err)
	}
	p.has("heading", "")
}

// nodes returns the elements with a role and a name; any name if it is "".
func (p *consolePage) nodes(role, name string) (found []int) {
	p.t.Helper()
	root, err := p.command("DOM.getDocument", map[string]any{"depth": 0})
	if err != nil || root.Error != nil {
		return nil // the page is changing
	}
	query := map[string]any{"nodeId": root.Result.Root.NodeID, "role": role}
	if name != "" {
		query["accessibleName"] = name
	}
	r, err := p.command("Accessibility.queryAXTree", query)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, n := range r.Result.Nodes {
		if !n.Ignored {
			found = append(found, n.BackendDOMNodeID)
		}
	}
	return found
}

// has waits for an element, and returns it.
func (p *consolePage) has(role, name string) (node int) {
	p.t.Helper()
	before := p.t.Failed()
	defer func() {
		if p.t.Failed() && !before {
			var text string
			_ = p.try(&text, "location.href + ' ' + document.body.innerText")
			p.t.Logf("the page: %s", text)
			p.t.Logf("elements of this role: %s", p.named(role))
		}
	}()
	until(p.t, role+" "+name, pageTime, func() bool {
		found := p.nodes(role, name)
		if len(found) > 0 {
			node = found[0]
		}
		return len(found) > 0
	})
	return node
}

// named returns the names of all elements with a role, and the error of the browser, for the report of a failed test.
func (p *consolePage) named(role string) (names []string) {
	root, err := p.command("DOM.getDocument", map[string]any{"depth": 0})
	if err != nil || root.Error != nil {
		return []string{fmt.Sprint("no document: ", err, root.Error)}
	}
	r, err := p.command("Accessibility.queryAXTree", map[string]any{"nodeId": root.Result.Root.NodeID, "role": role})
	if err != nil || r.Error != nil {
		return []string{fmt.Sprint("no accessibility tree: ", err, r.Error)}
	}
	for _, n := range r.Result.Nodes {
		names = append(names, fmt.Sprintf("%q ignored=%t", n.Name.Value, n.Ignored))
	}
	return names
}

// hasNot waits until there is no such element.
func (p *consolePage) hasNot(role, name string) {
	p.t.Helper()
	until(p.t, "no "+role+" "+name, pageTime, func() bool { return len(p.nodes(role, name)) == 0 })
}

// call calls a function of JavaScript on an element, which is this.
func (p *consolePage) call(node int, function string, args ...any) {
	p.t.Helper()
	o, err := p.command("DOM.resolveNode", map[string]any{"backendNodeId": node})
	if err != nil || o.Error != nil {
		p.t.Fatalf("the element is gone: %v %v", err, o.Error)
	}
	list := []map[string]any{}
	for _, a := range args {
		list = append(list, map[string]any{"value": a})
	}
	r, err := p.command("Runtime.callFunctionOn", map[string]any{"objectId": o.Result.Object.ObjectID, "functionDeclaration": function,
		"arguments": list, "userGesture": true, "awaitPromise": true, "returnByValue": true})
	if err != nil || r.Error != nil || r.Result.Exception != nil {
		p.t.Fatalf("%s: %v %+v", function, err, r)
	}
}

// click waits for an element and clicks it with the mouse.
func (p *consolePage) click(role, name string) {
	p.t.Helper()
	p.clickFound(role+" "+name, func() int { return p.has(role, name) })
}

// clickFound clicks the element that find returns. It finds it again if the page replaces the element.
func (p *consolePage) clickFound(what string, find func() int) {
	p.t.Helper()
	for range 5 {
		if p.clickOnce(find()) {
			return
		}
	}
	p.t.Fatalf("%s moves: no click lands on it", what)
}

// clickOnce clicks an element. It reports false if the page moved or replaced the element meanwhile, or had disabled it, so that the click
// landed elsewhere. A button may open something above itself when it is pressed, or be removed when it is released.
func (p *consolePage) clickOnce(node int) bool {
	p.t.Helper()
	p.call(node, `async function() {
		this.scrollIntoView({block: "center"});
		const middle = () => { const r = this.getBoundingClientRect(); return {x: r.x + r.width / 2, y: r.y + r.height / 2}; };
		for (let i = 0; i < 50; i++) { // a page that is being built moves its elements, and a request disables its button
			window.at = middle();
			await new Promise((done) => setTimeout(done, 20));
			const now = middle();
			if (now.x === window.at.x && now.y === window.at.y && !this.disabled) break;
		}
		const works = !this.disabled;
		const text = (e) => e.getAttribute("aria-label") ?? e.innerText, mine = text(this);
		const isMine = (e) => this.contains(e) || text(e.closest(this.tagName) ?? e) === mine; // it may be drawn anew
		const got = {};
		window.landed = () => {
			const now = middle(), stays = this.isConnected && now.x === window.at.x && now.y === window.at.y;
			return works && stays || !!got.click || !!got.pointerdown && (got.pointerdown === got.pointerup || got.pointerdown.isConnected);
		};
		for (const kind of ["pointerdown", "pointerup", "click"]) {
			document.addEventListener(kind, (e) => { got[kind] = isMine(e.target) && e.target; }, {once: true, capture: true});
		}
	}`)
	var at struct{ X, Y float64 }
	p.eval(&at, "window.at")
	for _, kind := range []string{"mouseMoved", "mousePressed", "mouseReleased"} {
		event := map[string]any{"type": kind, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1}
		if kind == "mouseMoved" {
			event["button"], event["clickCount"] = "none", 0
		}
		if r, err := p.command("Input.dispatchMouseEvent", event); err != nil || r.Error != nil {
			p.t.Fatal(err, r.Error)
		}
	}
	var hit bool
	err := p.try(&hit, "window.landed()")
	return err != nil || hit // the click may have opened another page
}

// types waits for a field, focuses it, and types a text.
func (p *consolePage) types(role, name, text string) {
	p.t.Helper()
	p.call(p.has(role, name), "function() { this.focus(); this.select?.(); }")
	p.write(text)
}

// codes are the key codes of keys that are not letters.
var codes = map[string]int{"Enter": 13, " ": 32, "ArrowRight": 39, "ArrowLeft": 37, "ArrowDown": 40, "Escape": 27, "Tab": 9}

func keyCode(key string) int {
	if code := codes[key]; code != 0 {
		return code
	}
	return int(strings.ToUpper(key)[0])
}

// key presses a key.
func (p *consolePage) key(key string) {
	p.t.Helper()
	text := key
	switch {
	case key == "Enter":
		text = "\r"
	case len(key) > 1:
		text = ""
	}
	for _, kind := range []string{"keyDown", "keyUp"} {
		event := map[string]any{"type": kind, "key": key, "windowsVirtualKeyCode": keyCode(key)}
		if kind == "keyDown" {
			event["text"] = text
		}
		if r, err := p.command("Input.dispatchKeyEvent", event); err != nil || r.Error != nil {
			p.t.Fatal(err, r.Error)
		}
	}
}

// shows waits for texts on the page.
func (p *consolePage) shows(texts ...string) {
	p.t.Helper()
	for _, text := range texts {
		var page string
		until(p.t, text+" on the page", pageTime, func() bool {
			return p.try(&page, "document.body.innerText") == nil && strings.Contains(page, text)
		})
	}
}

// theme sets the colours that the system of the browser prefers.
func (p *consolePage) theme(name string) {
	p.t.Helper()
	if _, err := p.command("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{
		{"name": "prefers-color-scheme", "value": name}, {"name": "prefers-reduced-motion", "value": "reduce"}}}); err != nil {
		p.t.Fatal(err)
	}
}

// width sets the size of the window.
func (p *consolePage) width(w, h int) {
	p.t.Helper()
	size := map[string]any{"width": w, "height": h, "deviceScaleFactor": 1, "mobile": false}
	if _, err := p.command("Emulation.setDeviceMetricsOverride", size); err != nil {
		p.t.Fatal(err)
	}
}

// picture writes a screenshot of the page into the folder that SONIQ_E2E_PICTURES names, if it is set.
func (p *consolePage) picture(name string) {
	p.t.Helper()
	folder := os.Getenv("SONIQ_E2E_PICTURES")
	if folder == "" {
		return
	}
	r, err := p.command("Page.captureScreenshot", map[string]any{"format": "png"})
	if err != nil {
		p.t.Fatal(err)
	}
	b, err := base64.StdEncoding.DecodeString(r.Result.Data)
	if err != nil || os.WriteFile(filepath.Join(folder, name+".png"), b, 0o644) != nil {
		p.t.Fatalf("the picture %s was not written", name)
	}
}

// faultless fails for errors of the page, reports of its policy, and requests to other hosts. allowed are texts of errors that the test
// caused.
func (p *consolePage) faultless(allowed ...string) {
	p.t.Helper()
	if !p.watched {
		p.t.Fatal("the page was not watched")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	asked := 0
	for _, told := range p.told {
		var e struct {
			Request struct{ URL string }
			Type    string
			Entry   struct{ Level string }
		}
		_ = json.Unmarshal(told.Params, &e)
		if told.Method == "Network.requestWillBeSent" {
			asked++
		}
		if slices.ContainsFunc(allowed, func(text string) bool { return strings.Contains(string(told.Params), text) }) {
			continue
		}
		switch told.Method {
		case "Network.requestWillBeSent":
			if !strings.HasPrefix(e.Request.URL, p.base+"/") && !strings.HasPrefix(e.Request.URL, "data:") {
				p.t.Errorf("the console asks for %s", e.Request.URL)
			}
		case "Runtime.exceptionThrown":
			p.t.Errorf("an exception: %.900s", told.Params)
		case "Runtime.consoleAPICalled", "Log.entryAdded":
			if e.Type == "error" || e.Type == "assert" || e.Entry.Level == "error" {
				p.t.Errorf("the page complains: %.900s", told.Params)
			}
		}
	}
	if asked < 5 {
		p.t.Errorf("only %d requests were seen", asked)
	}
}
