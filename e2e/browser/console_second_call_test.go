package browser

import (
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// A second call rings during a call. Answering it puts the first on hold, the person switches between both, and each hears only the one in
// front. A second call can be declined, and when one of two ends the other comes to the front.
func TestConsole_SecondCall(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 2*time.Minute, "a browser takes two calls, and each state is heard for some seconds")
	office := newOffice(t)
	bob := office.AddUser("Bob")
	desk := office.Phone(bob, fixture.BobTone, rig.PhoneOptions{})
	p, _, way := deskWithPhone(office)
	extension := p.extension(office)
	caller := p.callBrowser(office, way, "Answer")
	p.hearsOnly("the first call", fixture.CallerTone)
	desk.Do("dial", extension)
	p.has("region", "Incoming call")
	p.checked("second-ringing")
	p.hearsOnly("while the second rings", fixture.CallerTone)
	p.click("button", "Hold and answer")
	desk.Wait("CALL_ESTABLISHED", "")
	p.hearsOnly("the second call", fixture.BobTone)
	waitTone(t, "Bob", desk, browserTone)
	hearsNot(t, "the first caller, on hold,", caller, browserTone)
	p.checked("second-call")
	p.click("button", "Switch to +1 212 555 0101")
	p.has("button", "Switch to Bob")
	p.hearsOnly("back at the first call", fixture.CallerTone)
	waitTone(t, "the first caller", caller, browserTone)
	p.click("button", "Switch to Bob")
	p.hearsOnly("back at the second call", fixture.BobTone)
	p.click("button", "Hang up")
	desk.Wait("CALL_CLOSED", "")
	p.has("button", "Resume")
	p.click("button", "Resume")
	p.hearsOnly("the first call again", fixture.CallerTone)
	desk.Do("dial", extension)
	p.click("button", "Decline")
	desk.Wait("CALL_CLOSED", "")
	p.hasNot("region", "Incoming call")
	p.hearsOnly("after declining", fixture.CallerTone)
	p.click("button", "Hang up")
	caller.WaitEnd()
	p.faultless()
}
