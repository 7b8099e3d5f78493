package browser

import (
	_ "embed"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

//go:embed heard.js
var heardJS string

// listens makes the page tell which tone it hears in a call. It counts for the pages that are opened next.
func (p *consolePage) listens() {
	p.t.Helper()
	if r, err := p.command("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": heardJS}); err != nil || r.Error != nil {
		p.t.Fatal(err, r.Error)
	}
}

// hears waits until the page hears a tone.
func (p *consolePage) hears(hz float64) {
	p.t.Helper()
	var heard float64
	until(p.t, "a tone in the browser", pageTime, func() bool {
		return p.try(&heard, "window.heard()") == nil && heard > hz*0.95 && heard < hz*1.05
	})
}

// journeyPage is a page of the console in Chromium or Firefox.
type journeyPage interface {
	goTo(path string)
	waitFor(role, name string)
	hasNot(role, name string)
	click(role, name string)
	types(role, name, text string)
	shows(texts ...string)
	hears(hz float64)
	eval(out any, format string, args ...any)
	checked(name string)
}

// waitFor waits for an element.
func (p *consolePage) waitFor(role, name string) {
	p.t.Helper()
	p.has(role, name)
}

// api sends a request with the session of the page.
func (p *consolePage) api(method, path, body string) {
	p.t.Helper()
	sendByPage(p.t, p, method, path, body)
}

// sendByPage sends a request with the session of a page.
func sendByPage(t *testing.T, p journeyPage, method, path, body string) {
	t.Helper()
	var status int
	p.eval(&status, `fetch(%s, {method: %s, headers: {"Content-Type": "application/json", "Soniq-Page": "1"}, body: %s}).then((r) => r.status)`,
		quoted("/api/v1"+path), quoted(method), quoted(body))
	if status >= 300 {
		t.Fatalf("%s %s: %d", method, path, status)
	}
}

// startEmptyServer starts a server without an organisation, and returns its address and a link for Ada, its first user. The tones of the
// two people of firstCall mean words.
func startEmptyServer(t *testing.T, flags ...string) (base, invitation string) {
	t.Helper()
	e := fixture.NewAIServer(t)
	e.Meanings = map[float64]string{440: "Good morning, this is Ada.", 1000: "I can hear you well."}
	o := e.LanguageModelOptions(nil)
	o.Load, o.Env["SONIQ_VOICE"] = rig.Browser, "off"
	delete(o.Env, "SONIQ_VOICE_AGENT")
	o.Flags = append(o.Flags, flags...)
	s := rig.Start(t, o)
	return "http://" + s.HTTP, s.Command("admin", "users", "add", "ada@example.com", "--first-name", "Ada", "--last-name", "Lovelace")
}

// firstCall lets Ada invite Grace on the page Getting started, and call her. open opens the console of Grace by her link. They hear each
// other, and the page of the call shows the recording and the words.
func firstCall(t *testing.T, ada journeyPage, open func(link string) journeyPage) {
	t.Helper()
	sendByPage(t, ada, "PATCH", "/organization", `{"recording":{"mode":"on","consent":"none"}}`)
	grace := open(invitedByPage(ada))
	grace.hasNot("heading", "Getting started")
	grace.click("button", "Turn on the phone")
	grace.waitFor("button", "Phone ready")
	ada.click("button", "Call Grace Hopper")
	grace.shows("Ada Lovelace")
	grace.click("button", "Answer")
	ada.waitFor("button", "Mute")
	grace.hears(440)
	ada.hears(1000)
	fixture.LetCallRun(t, 4*time.Second)
	grace.click("button", "Hang up")
	ada.hasNot("button", "Hang up")
	ada.click("link", "Calls")
	ada.waitFor("heading", "Calls")
	ada.waitFor("table", "")
	ada.eval(nil, `document.querySelector("a[href^='/console/calls/call_']").click()`)
	ada.waitFor("region", "Recording")
	ada.shows("Good morning, this is Ada.", "I can hear you well.")
	ada.checked("start-call")
}

// invitedByPage makes the browser of Ada a phone, and invites Grace. It returns the link of the invitation.
func invitedByPage(ada journeyPage) (link string) {
	ada.waitFor("heading", "Getting started")
	ada.shows("0 of 4 done")
	ada.checked("start")
	ada.click("button", "Use this browser as a phone")
	ada.waitFor("button", "Phone ready")
	ada.shows("1 of 4 done")
	ada.types("textbox", "First name", "Grace")
	ada.types("textbox", "Last name", "Hopper")
	ada.types("textbox", "E-mail", "grace@example.com")
	ada.click("button", "Invite")
	ada.waitFor("textbox", "Link of the invitation")
	ada.shows("2 of 4 done")
	ada.checked("start-invited")
	ada.eval(&link, `document.querySelector(".invited input").value`)
	return link
}

// A new user opens the sign-in link of an empty server, chooses a password, and invites a colleague on the page Getting started. The two
// browsers call and hear each other. The page of the call shows the recording and the words.
func TestConsole_EmptyServerToFirstCall(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 4*time.Minute, "two browsers set a server up and call each other; the words are recognised")
	base, invitation := startEmptyServer(t)
	console := func(link, shown, path, hz string) *consolePage {
		p := welcome(t, base, link, shown, path, hz)
		p.listens()
		p.goTo(path)
		return p
	}
	ada := console(invitation, "owner of", "/console/", "440")
	firstCall(t, ada, func(link string) journeyPage {
		grace := console(link, "agent of", "/console/desk", "1000")
		t.Cleanup(func() { grace.faultless() })
		return grace
	})

	ada.goTo("/console/desk")
	ada.shows("2 of 4 done")
	ada.api("POST", "/trunks", `{"name":"Carrier","host":"127.0.0.1","transport":"udp"}`)
	ada.shows("3 of 4 done")
	ada.api("POST", "/flows", `{"name":"Main","publish":true,"ivr":{"greeting":"Press one.","options":{"1":"ext:100"},"timeout_to":"ext:100"}}`)
	ada.shows("Everything is set up.")
	ada.click("button", "Close")
	ada.hasNot("heading", "Getting started")
	ada.goTo("/console/desk")
	ada.has("heading", "Desk")
	ada.hasNot("heading", "Getting started")
	ada.faultless()
}
