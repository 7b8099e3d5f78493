package browser

import (
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// A user without a session is led to the sign-in page and back to the same address. Language and theme are kept. If the session is ended
// elsewhere, the page says so and links to the sign-in.
func TestConsole_SignInAndBack(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 2*time.Minute, "a browser examines several pages in three sizes and colours")
	office := newOffice(t)
	p, user := openConsole(office, "agent", "/console/calls?direction=inbound", "440")
	p.has("heading", "Calls")
	p.shows("No call matches these filters.", "Live")
	p.checked("calls-empty")
	if r := bearer(t, "GET", p.base+"/", "none"); r.StatusCode != 200 {
		t.Errorf("a program that asks for / gets %s", r.Status)
	}
	if _, err := p.command("Page.navigate", map[string]any{"url": p.base + "/"}); err != nil {
		t.Fatal(err)
	}
	p.has("heading", "Desk")
	p.checked("desk-idle")
	p.clickInMenu("Dana Reed, Org of "+t.Name(), "menuitemradio", "Deutsch")
	p.key("Escape")
	p.has("link", "Anrufe")
	p.goTo("/console/calls")
	p.has("heading", "Anrufe")
	p.goTo("/console/nothing")
	p.has("heading", "Diese Seite gibt es nicht")
	p.goTo("/console/calls?direction=inbound")
	p.shows("Live")
	p.faultless()
	office.Want(200, "PATCH", "/users/"+user.ID, map[string]any{"status": "suspended"}, nil)
	p.has("heading", "Sie sind abgemeldet")
	office.Want(200, "PATCH", "/users/"+user.ID, map[string]any{"status": "active"}, nil)
	if _, err := p.command("Network.clearBrowserCookies", map[string]any{}); err != nil { // the session would count again
		t.Fatal(err)
	}
	p.click("link", "Anmelden")
	p.signIn(mailOf(t, "Dana"))
	p.has("heading", "Anrufe")
	var at string
	p.eval(&at, "location.pathname + location.search")
	if at != "/console/calls?direction=inbound" {
		t.Errorf("after signing in at %s", at)
	}
}

// wantToneAtMost checks the next four seconds of the caller's audio: in the last two a tone has at most a duration. It does not wait for a
// pause of the tone, because Chromium's echo canceller makes some.
func wantToneAtMost(caller *fixture.Caller, when string, hz float64, most time.Duration) {
	caller.T.Helper()
	heard := caller.Since(caller.Mark(), 4*time.Second)
	if d := fixture.ToneDuration(heard[len(heard)/2:], hz); d > most {
		caller.T.Errorf("%s: the caller hears %.0f Hz for %s of two seconds", when, hz, d)
	}
}

// An agent takes a call of a queue in the browser: the card names the caller, and Enter answers. The caller hears the agent except while
// muted or on hold. Note, tag and outcome are in the record. Another choice of presence ends the wrap-up.
func TestConsole_TakesQueueCall(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 3*time.Minute, "a browser takes a call and writes about it, and each state is examined in three sizes and colours")
	rig.Both(t, rig.Options{Load: rig.Browser, Flags: []string{"--transcriber", "off"}}, takesQueueCall)
}

func takesQueueCall(t *testing.T, s *rig.Server) {
	office := fixture.NewOrg(s)
	p, user := openConsole(office, "agent", "/console/desk", "440")
	queue := office.AddQueue(map[string]any{"wrap_up_seconds": 600,
		"dispositions": []map[string]any{{"code": "refund", "label": "Refund promised"}}}, user)
	office.Want(201, "POST", "/contacts", map[string]any{"first_name": "Ada", "last_name": "Byron", "company": "Harbor Dental",
		"phones": []map[string]any{{"number": "+12125550101"}}}, nil)
	way := office.AddCarrier("", nil)
	office.Want(200, "PATCH", "/numbers/"+office.NumberID(way), map[string]any{"queue_id": queue}, nil)
	p.click("button", "Turn on the phone")
	p.has("button", "Phone ready")
	office.SetPresence(user, "available")
	office.WaitPresence(user, "available")
	p.has("button", "Presence: Available")

	type result struct {
		caller *fixture.Caller
		err    error
	}
	called := make(chan result, 1)
	go func() {
		v, err := office.TryCallIn(way, "+12125550101")
		called <- result{v, err}
	}()
	p.has("region", "Incoming call")
	p.shows("Ada Byron", "Harbor Dental", "Calls Support")
	p.checked("desk-ringing")
	p.call(p.has("heading", "Desk"), "function() { document.activeElement.blur(); }")
	p.key("Enter")
	got := <-called
	if got.err != nil {
		t.Fatal(got.err)
	}
	p.has("button", "Mute")
	got.caller.WaitTone(0, 440)
	p.click("button", "Mute")
	p.has("button", "Unmute")
	wantToneAtMost(got.caller, "muted", 440, 0)
	p.click("button", "Unmute")
	got.caller.WaitTone(got.caller.Mark(), 440)
	p.click("button", "Hold")
	p.has("button", "Resume")
	wantToneAtMost(got.caller, "on hold", 440, 1200*time.Millisecond) // the music has this tone too
	p.click("button", "Resume")
	p.has("button", "Hold")
	got.caller.WaitTone(got.caller.Mark(), 440)
	p.types("textbox", "New note", "Charged twice for invoice 4711.")
	p.click("button", "Add note")
	p.shows("Charged twice for invoice 4711.")
	p.types("combobox", "Tags", "billing")
	p.click("button", "Add")
	p.has("button", "Remove the tag billing")
	p.checked("desk-call")
	p.click("button", "Hang up")
	got.caller.WaitEnd()
	p.has("heading", "After the call with Ada Byron")
	p.click("button", "Refund promised")
	p.checked("desk-wrap-up")
	p.click("button", "Available again")
	p.hasNot("heading", "After the call with Ada Byron")
	office.WaitPresence(user, "available")
	p.goTo("/console/calls")
	p.click("link", "Ada Byron")
	p.has("heading", "Ada Byron called Support, Dana Reed answered")
	p.shows("billing", "Charged twice for invoice 4711.", "refund")
	p.click("tab", "Timeline")
	p.shows("The caller entered a queue")
	p.checked("call-timeline")
	p.click("tab", "Sound quality")
	p.has("heading", "Caller")
	p.checked("call-quality")
	p.click("tab", "Deliveries")
	p.shows("call.started")
	p.checked("call-deliveries")
	p.faultless()
}

// The sound of a call plays with its words: the line that is heard is marked, a line plays from its moment, an address names a moment, and
// keys alone are enough.
func TestConsole_PlaysCallWithWords(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 2*time.Minute, "a call is made, transcribed, and played in a browser")
	e := fixture.NewAIServer(t)
	e.Meanings = map[float64]string{fixture.CallerTone: "I was charged twice for invoice 4711.", 1000: "I will send the refund today."}
	o := e.LanguageModelOptions(nil)
	o.Load, o.Env["SONIQ_VOICE"] = rig.Browser, "off"
	delete(o.Env, "SONIQ_VOICE_AGENT")
	s := rig.Start(t, o)
	office := fixture.NewOrg(s)
	office.Want(200, "PATCH", "/organization", map[string]any{"recording": map[string]any{"mode": "on", "consent": "none"}}, nil)
	bob := office.AddUser("Bob")
	office.Phone(bob, 1000, rig.PhoneOptions{Auto: true})
	way := office.AddCarrier(bob.ID, nil)
	v := office.CallIn(way, "+12125550101")
	v.WaitTone(0, 1000)
	fixture.LetCallRun(t, 6*time.Second)
	v.Line.HangUp()
	v.WaitEnd()
	id := office.Webhook.Wait("call.ended", time.Minute, nil).Data["call_id"].(string)
	office.Recording(id)
	p, _ := openConsole(office, "supervisor", "/console/calls/"+id+"#t=3", "440")
	p.has("region", "Recording")
	p.shows("I was charged twice for invoice 4711.", "I will send the refund today.", "0:03")
	p.checked("call-conversation")
	var at float64
	p.eval(&at, "document.querySelector('audio').currentTime")
	if at < 2.7 || at > 3.3 {
		t.Errorf("the sound is at %.1f s, want the moment of the address, 3 s", at)
	}
	p.call(p.has("slider", "Position"), "function() { this.focus(); }")
	p.key("ArrowLeft")
	p.eval(&at, "document.querySelector('audio').currentTime")
	if at != 0 {
		t.Errorf("after an arrow to the left the sound is at %.1f s, want 0", at)
	}
	p.key(" ")
	p.has("button", "Pause")
	until(t, "the sound to play", pageTime, func() bool {
		p.eval(&at, "document.querySelector('audio').currentTime")
		return at > 0.5
	})
	until(t, "a line that is heard", pageTime, func() (marked bool) {
		p.eval(&marked, "!!document.querySelector('.said [aria-current=true]')")
		return marked
	})
	p.types("searchbox", "Find in the words", "refund")
	p.shows("1 place")
	p.faultless()
}
