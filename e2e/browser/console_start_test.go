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

// api sends a request with the session of the page.
func (p *consolePage) api(method, path, body string) {
	p.t.Helper()
	var status int
	p.eval(&status, `fetch(%s, {method: %s, headers: {"Content-Type": "application/json", "Soniq-Page": "1"}, body: %s}).then((r) => r.status)`,
		quoted("/api/v1"+path), quoted(method), quoted(body))
	if status >= 300 {
		p.t.Fatalf("%s %s: %d", method, path, status)
	}
}

// A new user opens the sign-in link of an empty server, chooses a password, and invites a colleague on the page Getting started. The two
// browsers call and hear each other. The page of the call shows the recording and the words.
func TestConsole_EmptyServerToFirstCall(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 4*time.Minute, "two browsers set a server up and call each other; the words are recognised")
	e := fixture.NewAIServer(t)
	e.Meanings = map[float64]string{440: "Good morning, this is Ada.", 1000: "I can hear you well."}
	o := e.LanguageModelOptions(nil)
	o.Load, o.Env["SONIQ_VOICE"] = rig.Browser, "off"
	delete(o.Env, "SONIQ_VOICE_AGENT")
	s := rig.Start(t, o)
	base := "http://" + s.HTTP
	ada := welcome(t, base, s.Command("admin", "users", "add", "ada@example.com", "--first-name", "Ada", "--last-name", "Lovelace"), "owner of",
		"/console/", "440")
	ada.listens()
	ada.goTo("/console/")
	ada.api("PATCH", "/organization", `{"recording":{"mode":"on","consent":"none"}}`)
	ada.has("heading", "Getting started")
	ada.shows("0 of 4 done")
	ada.checked("start")
	ada.click("button", "Use this browser as a phone")
	ada.has("button", "Phone ready")
	ada.shows("1 of 4 done")
	ada.types("textbox", "First name", "Grace")
	ada.types("textbox", "Last name", "Hopper")
	ada.types("textbox", "E-mail", "grace@example.com")
	ada.click("button", "Invite")
	ada.has("textbox", "Link of the invitation")
	ada.shows("2 of 4 done")
	ada.checked("start-invited")
	var link string
	ada.eval(&link, `document.querySelector(".invited input").value`)

	grace := welcome(t, base, link, "agent of", "/console/desk", "1000")
	grace.listens()
	grace.goTo("/console/desk")
	grace.hasNot("heading", "Getting started")
	grace.click("button", "Turn on the phone")
	grace.has("button", "Phone ready")
	ada.click("button", "Call Grace Hopper")
	grace.shows("Ada Lovelace")
	grace.click("button", "Answer")
	ada.has("button", "Mute")
	grace.hears(440)
	ada.hears(1000)
	fixture.LetCallRun(t, 4*time.Second)
	grace.click("button", "Hang up")
	ada.hasNot("button", "Hang up")
	ada.click("link", "Calls")
	ada.has("heading", "Calls")
	ada.has("table", "")
	ada.eval(nil, `document.querySelector("a[href^='/console/calls/call_']").click()`)
	ada.has("region", "Recording")
	ada.shows("Good morning, this is Ada.", "I can hear you well.")
	ada.checked("start-call")

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
	grace.faultless()
}
