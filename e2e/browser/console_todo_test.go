package browser

import (
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// signInAgain opens the console in another browser of the same user.
func signInAgain(p *consolePage, path string) *consolePage {
	t := p.t
	t.Helper()
	c := open(t, tone(t, "440"), p.base+"/account/login", consoleFlags...)
	other := &consolePage{person: &person{t: t, chromium: c, base: p.base}}
	other.signIn(mailOf(t, "Dana"))
	other.person.shows("supervisor of")
	other.watch()
	other.goTo(path)
	return other
}

// Two browsers list a missed call, a voicemail message and an unread text. An item that is handled in one disappears from the other.
func TestConsole_TodoInTwoBrowsers(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 4*time.Minute, "two browsers follow calls and messages, and the list is examined in three sizes and colours")
	rig.Both(t, rig.Options{Load: rig.Browser, Flags: []string{"--transcriber", "off"}}, todoInTwoBrowsers)
}

func todoInTwoBrowsers(t *testing.T, s *rig.Server) {
	office := fixture.NewOrg(s)
	way := office.AddCarrier("", nil)
	carrier := newTextCarrier(t, office, way.Trunk, reception)
	first, user := openConsole(office, "supervisor", "/console/desk", "440") // sees calls that rang no telephone
	second := signInAgain(first, "/console/desk")
	first.shows("Nothing is waiting for an answer.", "Live")
	second.shows("Nothing is waiting for an answer.", "Live")
	office.Want(200, "PATCH", "/numbers/"+office.NumberID(way), map[string]any{"user_id": user.ID}, nil)
	if _, err := office.TryCallIn(way, "+12125550109"); err == nil { // no telephone is on
		t.Fatal("the call was answered")
	}
	carrier.post(map[string]string{"mid": "in1", "from": customer, "to": reception, "text": "Please call me."})
	office.Want(200, "PATCH", "/numbers/"+office.NumberID(way), map[string]any{"user_id": nil, "fallback": "voicemail:" + user.ID}, nil)
	wav, _ := fixture.Tone(t, fixture.MessageTone)
	office.LeaveMessage(way, "+12125550108", fixture.Narrowband(fixture.ReadWAV(t, wav))[:3*8000])
	for _, p := range []*consolePage{first, second} {
		p.has("link", "+1 212 555 0109")
		p.has("link", "+1 212 555 0108")
		p.has("link", "+1 212 555 0101")
		p.shows("Please call me.", "Missed. Nobody has called back.")
	}
	first.checked("desk-todo")
	first.click("button", "Mark as heard")
	second.hasNot("link", "+1 212 555 0108")
	second.click("button", "Mark as read")
	first.hasNot("link", "+1 212 555 0101")
	first.click("button", "Turn on the phone")
	first.has("button", "Phone ready")
	office.Want(200, "PATCH", "/numbers/"+office.NumberID(way), map[string]any{"user_id": user.ID}, nil)
	answered := make(chan error, 1)
	go func() {
		_, err := office.TryCallIn(way, "+12125550109")
		answered <- err
	}()
	first.click("button", "Answer")
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	first.has("button", "Hang up")
	first.click("button", "Hang up")
	second.hasNot("link", "+1 212 555 0109")
	second.shows("Nothing is waiting for an answer.")
	first.faultless()
	second.faultless()
}
