package browser

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
)

// anotherTab opens a path of the console in another tab of the same browser.
func (p *consolePage) anotherTab(path string) *consolePage {
	p.t.Helper()
	address := p.base + path
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodPut, "http://"+p.address+"/json/new?"+url.QueryEscape(address),
		nil)
	if err != nil {
		p.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	_ = answer.Body.Close()
	c := &chromium{t: p.t, address: p.address, waiting: map[int]chan reply{}}
	c.attach(address)
	tab := &consolePage{person: &person{t: p.t, chromium: c, base: p.base}}
	tab.watch()
	tab.has("heading", "")
	return tab
}

// front brings the tab to the front, because a hidden tab has no accessibility tree.
func (p *consolePage) front() {
	p.t.Helper()
	if r, err := p.command("Page.bringToFront", map[string]any{}); err != nil || r.Error != nil {
		p.t.Fatal(err, r.Error)
	}
}

// waitEvent waits for an event of the browser whose parameters contain a text.
func (p *consolePage) waitEvent(method, text string) {
	p.t.Helper()
	until(p.t, method+" "+text, pageTime, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, e := range p.told {
			if e.Method == method && strings.Contains(string(e.Params), text) {
				return true
			}
		}
		return false
	})
}

// One tab of a browser is the telephone. Another one shows its calls and controls them. When the first is closed, the other registers, and
// takes the next call.
func TestConsole_OnePhoneInTwoTabs(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 90*time.Second, "a browser opens two tabs and takes two calls")
	office := newOffice(t)
	first, _, way := deskWithPhone(office)
	second := first.anotherTab("/console/calls")
	second.has("button", "Phone in another tab")
	first.front()
	caller := first.callBrowser(office, way, "Answer")
	second.front()
	second.shows("The phone is in another tab of this browser.")
	second.checked("other-tab")
	second.click("button", "Mute")
	first.front()
	first.click("button", "Unmute")
	second.front()
	second.has("button", "Mute")
	second.click("link", "Desk")
	second.click("button", "Hang up")
	caller.WaitEnd()
	second.click("button", "Available again")
	first.front()
	first.hasNot("button", "Available again")
	second.front()
	second.click("link", "Calls")
	if r, err := first.command("Page.close", map[string]any{}); err != nil || r.Error != nil {
		t.Fatal(err, r.Error)
	}
	second.has("button", "Phone ready")
	second.callBrowserFromList(office, way)
	second.faultless()
}

// callBrowserFromList calls the person at a page without the desk, who answers in the bar.
func (p *consolePage) callBrowserFromList(office *fixture.Org, way fixture.Carrier) {
	p.t.Helper()
	done := make(chan error, 1)
	go func() {
		v, err := office.TryCallIn(way, "+12125550101")
		if err == nil {
			v.Line.HangUp()
		}
		done <- err
	}()
	p.click("button", "Answer")
	if err := <-done; err != nil {
		p.t.Error(err)
	}
}

// Loading the page again during a call is warned of. If it happens all the same, the other side hears music, and the call comes back.
func TestConsole_ReloadDuringCall(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 2*time.Minute, "a browser takes a call, loads its page again, and each state is heard for some seconds")
	s := sharedServer(t, "--browser-timeout", "1m")
	office := fixture.NewOrg(s)
	p, _, way := deskWithPhone(office)
	caller := p.callBrowser(office, way, "Answer")
	p.hearsOnly("before", fixture.CallerTone)
	before := callID(office)
	go func() { _, _ = p.command("Page.reload", map[string]any{}) }()
	p.waitEvent("Page.javascriptDialogOpening", "beforeunload")
	if r, err := p.command("Page.handleJavaScriptDialog", map[string]any{"accept": true}); err != nil || r.Error != nil {
		t.Fatal(err, r.Error)
	}
	p.has("button", "Phone ready")
	p.has("button", "Mute")
	p.hearsOnly("after the page was loaded again", fixture.CallerTone)
	waitTone(t, "the caller", caller, browserTone)
	p.has("button", "Hold")
	if after := callID(office); after != before {
		t.Errorf("the call is %s, and was %s", after, before)
	}
	p.click("button", "Hang up")
	caller.WaitEnd()
	p.faultless()
}

// A page that is closed during a call and does not come back: the other side hears music, and the call ends.
func TestConsole_ClosedDuringCall(t *testing.T) {
	t.Parallel()
	limit.Budget(t, time.Minute, "a browser takes a call, and the server waits for its audio")
	s := sharedServer(t, "--browser-timeout", "5s")
	office := fixture.NewOrg(s)
	p, _, way := deskWithPhone(office)
	caller := p.callBrowser(office, way, "Answer")
	p.hearsOnly("before", fixture.CallerTone)
	if r, err := p.command("Page.close", map[string]any{}); err != nil || r.Error != nil {
		t.Fatal(err, r.Error)
	}
	p.waitEvent("Page.javascriptDialogOpening", "beforeunload")
	go func() { _, _ = p.command("Page.handleJavaScriptDialog", map[string]any{"accept": true}) }()
	caller.WaitEnd()
}

// TestConsole_GoneBrowserTakesNoCalls closes the page of an agent. The registration ends, queues do not ring the agent, and the presence
// is away. When the page is open again, the agent is available. Turning the telephone off makes the agent offline.
func TestConsole_GoneBrowserTakesNoCalls(t *testing.T) {
	t.Parallel()
	limit.Budget(t, time.Minute, "a browser leaves the console, and the server waits for it")
	s := sharedServer(t, "--browser-timeout", "5s", "--browser-away", "6s")
	office := fixture.NewOrg(s)
	p, user, _ := deskWithPhone(office)
	office.WaitPresence(user, "available")
	p.visit("/account")
	office.WaitPresence(user, "away")
	p.goTo("/console/desk")
	p.has("button", "Phone ready")
	office.WaitPresence(user, "available")
	p.clickInMenu("Phone ready", "menuitem", "Turn off the phone in this browser")
	p.has("button", "Turn on the phone")
	office.WaitPresence(user, "offline")
	p.faultless()
}

// TestConsole_SignOutEndsPhone signs out an agent with a phone in the browser only. The first time another tab still shows the console.
// The second time the page of the console was left, and the agent is away. Each time the agent is offline at once. The tab of the
// console shows the sign-in.
//
// https://github.com/twilio/OpenVBX/issues/268, https://github.com/onsip/SIP.js/issues/916
// https://github.com/openhab/openhab-webui/issues/1872, https://github.com/RestComm/olympus/issues/139
func TestConsole_SignOutEndsPhone(t *testing.T) {
	t.Parallel()
	limit.Budget(t, time.Minute, "two browsers leave the console, and the server waits for one of them")
	s := sharedServer(t, "--browser-timeout", "5s", "--browser-away", "6s")
	office := fixture.NewOrg(s)
	p, user, _ := deskWithPhone(office)
	office.WaitPresence(user, "available")
	console := p.anotherTab("/console/calls")
	console.has("button", "Phone in another tab")
	p.visit("/account")
	console.front()
	console.has("button", "Phone ready")
	p.press("Sign out")
	p.shows("Sign in")
	office.WaitPresence(user, "offline")
	console.front()
	console.shows("Sign in")

	office = fixture.NewOrg(s)
	p, user, _ = deskWithPhone(office)
	p.visit("/account")
	office.WaitPresence(user, "away")
	p.press("Sign out")
	p.shows("Sign in")
	office.WaitPresence(user, "offline")
}

// TestConsole_SessionExpiresInCall takes the session of an agent away during a call. The page says so beside the call, whose sound and
// controls go on. After the call the page is covered, and its phone is not registered any more.
//
// https://github.com/ringcentral/ringcentral-embeddable/issues/63, https://github.com/ringcentral/ringcentral-embeddable/issues/399
// https://github.com/ringcentral/ringcentral-embeddable/issues/403
func TestConsole_SessionExpiresInCall(t *testing.T) {
	t.Parallel()
	limit.Budget(t, time.Minute, "a browser takes a call, and each state is heard for some seconds")
	office := newOffice(t)
	p, user, way := deskWithPhone(office)
	caller := p.callBrowser(office, way, "Answer")
	if r, err := p.command("Network.clearBrowserCookies", map[string]any{}); err != nil || r.Error != nil {
		t.Fatal(err, r.Error)
	}
	p.click("link", "Calls")
	p.shows("Your session has ended. Finish this call, then sign in again.")
	p.shows("You are signed out")
	p.checked("session-expired-in-call")
	p.hearsOnly("after the session", fixture.CallerTone)
	p.click("button", "Mute")
	p.click("button", "Unmute")
	waitTone(t, "the caller", caller, browserTone)
	p.click("button", "Hang up")
	caller.WaitEnd()
	p.has("heading", "You are signed out")
	office.WaitPresence(user, "offline")
}

func callID(office *fixture.Org) string {
	id, _ := json.Marshal(office.LiveCall(func(c map[string]any) bool { return c["status"] == "in_progress" || c["status"] == "on_hold" })["id"])
	return string(id)
}
