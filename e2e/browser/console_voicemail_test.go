package browser

import (
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// A caller leaves a message while the page is open. It is heard with its words in step, assigned, marked as new, and deleted after a
// question.
func TestConsole_Voicemail(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 4*time.Minute, "a caller leaves a message that is transcribed, and each state is examined in three sizes and colours")
	e := fixture.NewAIServer(t)
	e.Meanings = map[float64]string{fixture.MessageTone: "Our invoice is wrong and it is urgent, please call me back today."}
	o := e.LanguageModelOptions(nil)
	o.Load, o.Env["SONIQ_VOICE"] = rig.Browser, "off"
	delete(o.Env, "SONIQ_VOICE_AGENT")
	s := rig.Start(t, o)
	office := fixture.NewOrg(s)
	office.Want(201, "POST", "/contacts", map[string]any{"first_name": "Ada", "last_name": "Byron", "company": "Harbor Dental",
		"phones": []map[string]any{{"number": customer}}}, nil)
	p, user := openConsole(office, "agent", "/console/voicemail", "440")
	way := office.AddCarrier("", nil)
	office.Want(200, "PATCH", "/numbers/"+office.NumberID(way), map[string]any{"fallback": "voicemail:" + user.ID}, nil)
	p.shows("There are no new messages.", "Live")
	wav, _ := fixture.Tone(t, fixture.MessageTone)
	words := fixture.Narrowband(fixture.ReadWAV(t, wav))
	office.LeaveMessage(way, customer, words[:6*8000])
	p.has("link", "Voicemail 1 new")
	p.clickText("link", "Ada Byron", "New")
	p.has("heading", "Ada Byron")
	p.shows("Our invoice is wrong and it is urgent, please call me back today.", "Urgent", "for Dana Reed")
	p.has("heading", "What was said")
	p.checked("voicemail")
	p.click("button", "Play")
	p.has("button", "Pause")
	until(t, "the words that are heard", pageTime, func() (marked bool) {
		p.eval(&marked, "!!document.querySelector('.said [aria-current=true]')")
		return marked
	})
	p.has("button", "Mark as new") // playing it was enough
	p.has("link", "Voicemail")
	p.shows("There are no new messages.")
	p.click("link", "Saved")
	p.clickText("link", "Ada Byron", "Dana Reed")
	p.selectOption("Assigned to", "Dana Reed")
	p.click("button", "Mark as new")
	p.has("link", "Voicemail 1 new")
	got := office.WaitMessages(1)[0]
	if got.Status != "new" {
		t.Errorf("the message is %s", got.Status)
	}
	office.Want(200, "PATCH", "/voicemail/"+got.ID, map[string]any{"status": "archived"}, nil) // by somebody else
	p.has("link", "Voicemail")
	p.click("button", "Delete")
	p.has("heading", "Delete the message of Ada Byron?")
	p.checked("voicemail-delete")
	p.call(p.has("dialog", "Delete the message of Ada Byron?"), "function() { this.querySelector('.danger').click(); }")
	p.shows("Choose a message to hear it.", "There are no saved messages.")
	office.WaitMessages(0)
	p.faultless()
}
