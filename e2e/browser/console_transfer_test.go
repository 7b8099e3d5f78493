package browser

import (
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// An agent asks a colleague first and comes back, speaks with both, removes the colleague, and hands over; then hands a call to a queue.
// Each of the three hears exactly who they should.
func TestConsole_TransfersCalls(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 4*time.Minute, "a browser goes through every kind of transfer, and each state is heard for some seconds")
	office := newOffice(t)
	carol := office.AddUser("Carol")
	desk := office.Phone(carol, fixture.CarolTone, rig.PhoneOptions{Auto: true})
	p, _, way := deskWithPhone(office)
	caller := p.callBrowser(office, way, "Answer")
	p.hearsOnly("in the call", fixture.CallerTone)
	p.call(p.has("heading", "Desk"), "function() { document.activeElement.blur(); }")
	p.key("t")
	p.has("form", "Transfer the call")
	p.selectOption("Transfer to", "Carol")
	p.checked("bar-transfer")
	p.click("button", "Ask first")
	desk.Wait("CALL_ESTABLISHED", "")
	p.has("group", "Transfer in progress")
	p.shows("You speak with Carol", "hears music")
	p.hearsOnly("asking", fixture.CarolTone)
	waitTone(t, "Carol", desk, browserTone)
	hearsNot(t, "the caller", caller, browserTone)
	p.checked("bar-asking")
	p.click("button", "Back to caller")
	desk.Wait("CALL_CLOSED", "")
	p.hasNot("group", "Transfer in progress")
	p.hearsOnly("back at the caller", fixture.CallerTone)
	waitTone(t, "the caller", caller, browserTone)

	p.askCarol(desk)
	p.click("button", "All three")
	p.has("list", "Also in the call")
	p.hearsOnly("all three", fixture.CallerTone, fixture.CarolTone)
	waitTone(t, "the caller", caller, fixture.CarolTone)
	waitTone(t, "the caller", caller, browserTone)
	waitTone(t, "Carol", desk, fixture.CallerTone)
	p.checked("bar-all-three")
	p.click("button", "Remove Carol from the call")
	desk.Wait("CALL_CLOSED", "")
	p.hasNot("list", "Also in the call")
	p.hearsOnly("without Carol", fixture.CallerTone)

	p.click("button", "Add person")
	p.types("combobox", "Add to the call", carol.Extension)
	p.click("button", "Call and add")
	desk.Wait("CALL_ESTABLISHED", "")
	p.hearsOnly("with Carol added", fixture.CallerTone, fixture.CarolTone)
	p.click("button", "Remove Carol from the call")
	desk.Wait("CALL_CLOSED", "")

	p.askCarol(desk)
	p.click("button", "Complete")
	p.has("heading", "After the call with +1 212 555 0101")
	waitTone(t, "the caller", caller, fixture.CarolTone)
	hearsNot(t, "the caller", caller, browserTone)
	waitTone(t, "Carol", desk, fixture.CallerTone)
	caller.Line.HangUp()
	desk.Wait("CALL_CLOSED", "")
	p.click("button", "Available again")

	office.AddQueue(nil, carol)
	office.SetPresence(carol, "available")
	caller = p.callBrowser(office, way, "Answer")
	p.click("button", "Transfer")
	p.selectOption("Transfer to", "Support")
	p.shows("A queue cannot be asked first")
	p.click("button", "Hand over now")
	desk.Wait("CALL_ESTABLISHED", "")
	waitTone(t, "the caller", caller, fixture.CarolTone)
	p.has("heading", "After the call with +1 212 555 0101")
	caller.Line.HangUp()
	p.faultless()
}

func (p *consolePage) askCarol(desk *rig.Phone) {
	p.t.Helper()
	p.click("button", "Transfer")
	p.selectOption("Transfer to", "Carol")
	p.click("button", "Ask first")
	desk.Wait("CALL_ESTABLISHED", "")
	p.hearsOnly("asking again", fixture.CarolTone)
}

// The bar says in words whether the call is recorded, and pauses the recording. If the recording is stopped elsewhere, the bar says so.
func TestConsole_PausesRecording(t *testing.T) {
	t.Parallel()
	limit.Budget(t, time.Minute, "a browser takes a call")
	office := newOffice(t)
	office.Want(200, "PATCH", "/organization", map[string]any{"recording": map[string]any{"mode": "on", "consent": "none"}}, nil)
	p, _, way := deskWithPhone(office)
	caller := p.callBrowser(office, way, "Answer")
	p.has("StaticText", "Recording")
	p.click("button", "Pause")
	p.has("StaticText", "Recording paused")
	p.checked("bar-recording-paused")
	p.click("button", "Record again")
	p.has("button", "Pause")
	id := office.LiveCall(func(map[string]any) bool { return true })["id"].(string)
	office.Want(200, "POST", "/calls/"+id+"/recording/stop", nil, nil)
	p.has("StaticText", "Recording stopped")
	p.hasNot("button", "Pause")
	p.has("button", "Hold")
	caller.Line.HangUp()
	p.has("heading", "After the call with +1 212 555 0101")
	p.faultless()
}
