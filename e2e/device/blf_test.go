package device

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// TestBLF_DialogStates proves that a telephone which watches an extension (RFC 4235) is notified while the extension
// rings, talks and hangs up.
func TestBLF_DialogStates(t *testing.T) {
	t.Parallel()
	rig.Either(t, rig.Options{Env: fixture.NoSpeech, Flags: []string{"--media-timeout", "0"}}, func(t *testing.T, s *rig.Server) {
		c := s.Org("live")
		ada, bob, eve := c.AddUser("Ada"), c.AddUser("Bob"), c.AddUser("Eve")
		low, _ := fixture.Tone(t, 440)
		one, two := s.Phone(ada.SIP, rig.PhoneOptions{Say: low}), s.Phone(bob.SIP, rig.PhoneOptions{Say: low})
		shows := watchLamp(t, s, eve, bob.Extension)
		shows("terminated")
		one.Do("dial", bob.Extension)
		two.Wait("CALL_INCOMING", "")
		shows("early")
		two.Do("accept", "")
		shows("confirmed")
		one.Do("hangup", "")
		shows("terminated")
	})
}

// TestBLF_SecondCallEnds proves that a second call to the watched extension, which ends first, does not change the lamp: while the first
// call rings, and while the watching user talks to the extension.
// https://github.com/kamailio/kamailio/issues/3192
// https://github.com/signalwire/freeswitch/issues/156
func TestBLF_SecondCallEnds(t *testing.T) {
	t.Parallel()
	rig.Either(t, rig.Options{Env: fixture.NoSpeech, Flags: []string{"--media-timeout", "0"}}, func(t *testing.T, s *rig.Server) {
		c := s.Org("live")
		ada, bob, eve := c.AddUser("Ada"), c.AddUser("Bob"), c.AddUser("Eve")
		low, _ := fixture.Tone(t, 440)
		phone := func(u rig.User) *rig.Phone { return s.Phone(u.SIP, rig.PhoneOptions{Say: low}) }
		one, two, three := phone(ada), phone(bob), phone(eve)
		shows := watchLamp(t, s, eve, bob.Extension)
		second := func(state string) {
			t.Helper()
			one.Do("dial", bob.Extension)
			one.Wait("CALL_RINGING", "")
			two.Wait("CALL_INCOMING", "")
			one.Do("hangup", "")
			one.Wait("CALL_CLOSED", "")
			shows(state)
		}
		three.Do("dial", bob.Extension)
		two.Wait("CALL_INCOMING", "")
		shows("early")
		second("early")
		three.Do("hangup", "")
		shows("terminated")
		three.Do("dial", bob.Extension)
		two.Wait("CALL_INCOMING", "")
		two.Do("accept", "")
		shows("confirmed")
		second("confirmed")
		three.Do("hangup", "")
		shows("terminated")
	})
}

// watchLamp subscribes to the dialogs of an extension as a user. The returned function waits for a state.
func watchLamp(t *testing.T, s *rig.Server, by rig.User, extension string) (shows func(state string)) {
	t.Helper()
	lamp := s.Sipp(rig.Script{Scenario: "watch", Login: &by.SIP, Number: extension, Limit: 2 * time.Minute})
	return func(state string) {
		t.Helper()
		rig.Until(t, "the lamp shows "+state, 30*time.Second, func() bool { return lastNotifiedState(t, lamp, extension) == state })
	}
}

// notifiedState matches a dialog-info document.
var notifiedState = regexp.MustCompile(`(?s) version="(\d+)" state="full" entity="sip:(\w+)@.*<state>(\w+)</state>`)

// lastNotifiedState returns the last state that a watcher received. Versions must count up.
func lastNotifiedState(t *testing.T, lamp *rig.Sipp, extension string) (state string) {
	t.Helper()
	version := 0
	for _, m := range lamp.Messages() {
		if !m.Received || !strings.HasPrefix(m.Text, "NOTIFY") {
			continue
		}
		if !strings.Contains(m.Text, "</dialog-info>") {
			continue // not completely written yet
		}
		told := notifiedState.FindStringSubmatch(m.Text)
		// a NOTIFY is repeated if its response was late
		if told == nil || told[1] != strconv.Itoa(version) && told[1] != strconv.Itoa(version-1) ||
			told[2] != extension || rig.Field(m.Text, "Event") != "dialog" || rig.Field(m.Text, "Content-Type") != "application/dialog-info+xml" {
			t.Fatalf("told as number %d:\n%s", version, m.Text)
		}
		if state = told[3]; told[1] == strconv.Itoa(version) {
			version++
		}
	}
	return state
}
