package e2e

import (
	"strings"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// TestTheLampOfAKeyShowsAColleaguesCalls has a telephone watch an extension (RFC 4235) while its telephone rings, speaks and hangs up.
func TestTheLampOfAKeyShowsAColleaguesCalls(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{Env: quiet, Flags: []string{"--media-timeout", "0"}}, func(t *testing.T, s *rig.Server) {
		c := s.Org("live")
		ada, bob, eve := c.AddUser("Ada"), c.AddUser("Bob"), c.AddUser("Eve")
		low, _ := tone(t, 440)
		one, two := s.Phone(ada.SIP, rig.PhoneOptions{Say: low}), s.Phone(bob.SIP, rig.PhoneOptions{Say: low})
		lamp := s.Sipp(rig.Script{Scenario: "watch", Login: &eve.SIP, Number: bob.Extension, Limit: 2 * time.Minute})
		shows := func(state string, version string) {
			t.Helper()
			rig.Until(t, "the lamp shows "+state, 30*time.Second, func() bool {
				for _, m := range lamp.Messages() {
					if m.Received && strings.HasPrefix(m.Text, "NOTIFY") && strings.Contains(m.Text, "<state>"+state+"</state>") &&
						strings.Contains(m.Text, ` version="`+version+`" state="full" entity="sip:`+bob.Extension+"@") &&
						rig.Field(m.Text, "Event") == "dialog" && rig.Field(m.Text, "Content-Type") == "application/dialog-info+xml" {
						return true
					}
				}
				return false
			})
		}
		shows("terminated", "0")
		one.Do("dial", bob.Extension)
		two.Wait("CALL_INCOMING", "")
		shows("early", "1")
		two.Do("accept", "")
		shows("confirmed", "2")
		one.Do("hangup", "")
		shows("terminated", "3")
		lamp.Wait()
	})
}
