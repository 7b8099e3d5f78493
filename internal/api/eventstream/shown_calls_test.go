package eventstream_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
	"soniq/internal/platform/visibility/visibilitytest"
)

// TestEvents_CallsOfTheUser publishes events of two calls. The stream of an agent has the events of the agent's call, screen
// pops of the agent's phone, and events without a call. The stream of an owner has all events.
func TestEvents_CallsOfTheUser(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newFixture(t, d)
		o := visibilitytest.Org{T: t, DB: d, ID: s.org}
		o.User("usr_1", "agent")
		o.User("usr_2", "owner")
		o.Call("call_own")
		o.Call("call_other")
		o.Leg("call_own", "usr_1")
		watch := func(user string) *streamClient {
			s.mu.Lock()
			s.principal.UserID = user
			s.mu.Unlock()
			return s.listen("?after_sequence=0")
		}
		agent, owner := watch("usr_1"), watch("usr_2")
		s.publish(event.CallRinging{CallID: "call_other"})
		s.publish(event.CallMissed{CallID: "call_other"})
		s.publish(event.CallRinging{CallID: "call_own"})
		s.publish(event.CallMissed{CallID: "call_own"})
		s.publish(event.UserCreated{UserID: "usr_9"})
		wantKinds(t, "the agent", agent, "call.ringing call_own", "call.missed call_own", "user.created")
		wantKinds(t, "the owner", owner, "call.ringing call_other", "call.missed call_other", "call.ringing call_own", "call.missed call_own",
			"user.created")
		other, own, user := "call_other", "call_new", "usr_1"
		s.must(s.outbox.PublishEphemeral(s.org, event.CallTranscriptSegment{CallID: other}))
		s.must(s.outbox.PublishEphemeral(s.org, event.ScreenPop{CallID: &other}))
		s.must(s.outbox.PublishEphemeral(s.org, event.ScreenPop{CallID: &own, UserID: &user}))
		wantKinds(t, "the agent", agent, "screen_pop call_new")
		wantKinds(t, "the owner", owner, "call.transcript_segment call_other", "screen_pop call_other", "screen_pop call_new")

		for user, want := range map[string]string{"usr_1": "call_own", "usr_2": "call_other call_own"} {
			s.mu.Lock()
			s.principal.UserID = user
			s.mu.Unlock()
			a := s.get(strings.Replace(s.url, "/stream", "?include_total=true", 1))
			b, _ := io.ReadAll(a.Body)
			a.Body.Close()
			for _, call := range []string{"call_own", "call_other"} {
				if strings.Contains(string(b), call) != strings.Contains(want, call) {
					t.Errorf("the list for %s: %s", user, b)
				}
			}
			if total := fmt.Sprintf(`"total":%d`, 1+len(strings.Fields(want))); !strings.Contains(strings.ReplaceAll(string(b), " ", ""), total) {
				t.Errorf("the list for %s has another total than %s: %s", user, total, b)
			}
		}
	})
}

// wantKinds reads events of the kinds, each about the call.
func wantKinds(t *testing.T, who string, c *streamClient, want ...string) {
	t.Helper()
	for _, w := range want {
		kind, call, _ := strings.Cut(w, " ")
		if e := c.next(); !strings.Contains(e, kind+" {") || !strings.Contains(e, call) {
			t.Errorf("%s is told %s, want %s", who, e, w)
		}
	}
}
