package browser

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// fixedServer starts a server of the test's own that has the same address after a restart, as the page expects.
func fixedServer(t *testing.T, o rig.Options) *rig.Server {
	t.Helper()
	o.Flags = []string{"--transcriber", "off", "--http", fmt.Sprintf("127.0.0.1:%d", rig.FreePort(t))}
	return rig.Start(t, o)
}

// permit sets whether the page may use the microphone.
func (p *consolePage) permit(setting string) {
	p.t.Helper()
	r, err := p.command("Browser.setPermission", map[string]any{"permission": map[string]any{"name": "microphone"}, "setting": setting})
	if err != nil || r.Error != nil {
		p.t.Fatal(err, r.Error)
	}
}

// The badge says that calls reach the browser only while they do: not without the microphone, while the server is gone, or while it does
// not answer. A call that goes on while the server is killed and started again is heard afterwards, and so is a new one.
func TestConsole_BadgeTellsWhatIsMissing(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 4*time.Minute, "the server must not answer for 40 seconds before the badge says so")
	s := fixedServer(t, rig.Options{Load: rig.Waits, // beside the others
		Upset: true}) // time limits of its queries end while it is stopped
	office := fixture.NewOrg(s)
	p, _, way := deskWithPhone(office)
	p.permit("denied")
	p.has("button", "Microphone refused")
	p.permit("granted")
	p.has("button", "Phone ready")
	if err := syscall.Kill(s.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	p.has("button", "Server does not answer")
	p.shows("The server has not answered for 40 seconds")
	if err := syscall.Kill(s.PID(), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	p.has("button", "Phone ready")
	s.Kill()
	p.has("button", "Phone not reachable")
	s.Start()
	p.has("button", "Phone ready")
	caller := p.callBrowser(office, way, "Answer")
	p.hearsOnly("after the restart", fixture.CallerTone)
	caller.Line.HangUp()
	caller.WaitEnd()
}

// A call goes on when the server is killed and started again.
func TestConsole_CallSurvivesRestart(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 2*time.Minute, "a browser takes a call, and the server starts twice")
	s := fixedServer(t, rig.Options{Load: rig.Browser})
	office := fixture.NewOrg(s)
	carol := office.AddUser("Carol")
	desk := office.Phone(carol, fixture.CarolTone, rig.PhoneOptions{})
	p, _, _ := deskWithPhone(office)
	desk.Do("dial", p.extension(office))
	p.click("button", "Answer")
	p.has("button", "Mute")
	p.hearsOnly("before the restart", fixture.CarolTone)
	s.Kill()
	p.has("button", "Phone not reachable")
	s.Start()
	p.has("button", "Phone ready")
	p.hearsOnly("after the restart", fixture.CarolTone)
	waitTone(t, "Carol", desk, browserTone)
	p.click("button", "Hang up")
	desk.Wait("CALL_CLOSED", "")
}

// extension returns the extension of the person at the browser.
func (p *consolePage) extension(office *fixture.Org) string {
	p.t.Helper()
	var all struct{ Data []rig.User }
	office.Want(200, "GET", "/users?q=dana", nil, &all)
	return all.Data[0].Extension
}

// Without a microphone the telephone is not turned on, and the badge says why.
func TestConsole_NoMicrophone(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	p, _ := openConsole(fixture.NewOrg(s), "agent", "/console/desk", "")
	p.click("button", "Turn on the phone")
	p.has("button", "No microphone")
	p.shows("This computer has no microphone.")
	p.checked("desk-no-microphone")
	p.faultless()
}

// A telephone without a microphone takes no calls. Its person becomes away with the reason in words, for themselves and for colleagues.
// They are what they chose as soon as the microphone is back. A state that the person chose stays. A desk phone keeps them available.
func TestConsole_AwayWithoutMicrophone(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 2*time.Minute, "two browsers open the console, and the server waits for one of them three times")
	s := sharedServer(t, "--browser-timeout", "5s", "--browser-away", "6s")
	office := fixture.NewOrg(s)
	p, user, _ := deskWithPhone(office)
	ruth, _ := colleague(office, "Ruth", "Byron", "agent", "/console/team", "")
	ruth.shows("Dana Reed")
	p.permit("denied")
	p.has("button", "Microphone refused")
	p.has("button", "Presence: Away · Browser not reachable")
	ruth.shows("Browser not reachable")
	p.click("button", "Presence: Away · Browser not reachable")
	p.shows("Calls do not reach your browser")
	p.checked("desk-not-reachable")
	p.key("Escape")
	p.permit("granted")
	p.has("button", "Phone ready")
	p.has("button", "Presence: Available")

	p.clickInMenu("Presence: Available", "menuitemradio", "Do not disturb")
	p.permit("denied")
	office.WaitUnreachable(user)
	p.has("button", "Presence: Do not disturb")
	p.clickInMenu("Presence: Do not disturb", "menuitemradio", "Available")
	p.has("button", "Presence: Away · Browser not reachable")
	office.Phone(user, fixture.BobTone, rig.PhoneOptions{})
	p.has("button", "Presence: Available")
	p.faultless()
	ruth.faultless()
}

// After a change of the network the telephone registers again, and finds new paths for the audio of its call.
func TestConsole_NetworkChanges(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 90*time.Second, "a browser takes a call, and loses its network")
	office := newOffice(t)
	p, _, way := deskWithPhone(office)
	caller := p.callBrowser(office, way, "Answer")
	p.hearsOnly("in the call", fixture.CallerTone)
	fragment := func() (text string) {
		p.eval(&text, `/a=ice-ufrag:(\S+)/.exec(connections.at(-1).localDescription.sdp)[1]`)
		return text
	}
	before := fragment()
	p.offline(true)
	p.has("button", "Phone not reachable")
	p.offline(false)
	p.has("button", "Phone ready")
	until(t, "another ICE session", pageTime, func() bool { return fragment() != before })
	p.hearsOnly("after the change", fixture.CallerTone)
	waitTone(t, "the caller", caller, browserTone)
	p.click("button", "Hang up")
	caller.WaitEnd()
}

// offline takes the network away from the page, or gives it back.
func (p *consolePage) offline(is bool) {
	p.t.Helper()
	r, err := p.command("Network.emulateNetworkConditions", map[string]any{"offline": is, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1})
	if err != nil || r.Error != nil {
		p.t.Fatal(err, r.Error)
	}
}

// A call whose packets are lost shows a warning in words. Both sides have the same codec, so the server passes the gaps on.
func TestConsole_WarnsOfBadSound(t *testing.T) {
	t.Parallel()
	limit.Budget(t, time.Minute, "the sound of a call is measured every two seconds")
	office := newOffice(t)
	bob := office.AddUser("Bob")
	desk := office.Phone(bob, fixture.BobTone, rig.PhoneOptions{Through: office.Server.BadNetwork(rig.Damage{Loss: 0.25, Seed: 11})})
	p, _, _ := deskWithPhone(office)
	desk.Do("dial", p.extension(office))
	p.click("button", "Answer")
	p.shows("You may not hear the other side well.", "% of the sound is lost.")
	p.checked("bar-bad-sound")
	p.click("button", "Hang up")
	desk.Wait("CALL_CLOSED", "")
	p.faultless()
}

// A call rings while the page loses its network. It rings on when the network is back, and can be answered. If the caller gave up
// meanwhile, it is not shown any more.
//
// https://github.com/NethServer/dev/issues/7753
func TestConsole_RingsWhileNetworkIsLost(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 90*time.Second, "a browser loses its network twice")
	office := newOffice(t)
	carol := office.AddUser("Carol")
	desk := office.Phone(carol, fixture.CarolTone, rig.PhoneOptions{})
	p, _, _ := deskWithPhone(office)
	extension := p.extension(office)
	desk.Do("dial", extension)
	p.has("button", "Answer")
	p.offline(true)
	p.has("button", "Phone not reachable")
	desk.Do("hangup", "")
	desk.Wait("CALL_CLOSED", "")
	p.offline(false)
	p.has("button", "Phone ready")
	p.hasNot("button", "Answer")

	desk.Do("dial", extension)
	p.has("button", "Answer")
	p.offline(true)
	p.has("button", "Phone not reachable")
	p.offline(false)
	p.has("button", "Phone ready")
	p.click("button", "Answer")
	p.has("button", "Mute")
	p.hearsOnly("after the network was lost", fixture.CarolTone)
	p.click("button", "Hang up")
	desk.Wait("CALL_CLOSED", "")
}
