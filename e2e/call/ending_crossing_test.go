package call

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// TestEnd_CrossesAnswer ends calls by request while the ringing phone answers. The phone gets a CANCEL or a BYE, whether
// the CANCEL or the 200 comes first.
func TestEnd_CrossesAnswer(t *testing.T) {
	t.Parallel()
	s := fixture.NewOrg(rig.Shared(t, rig.Options{Env: fixture.NoSpeech, Flags: []string{"--media-timeout", "0"}}))
	rings := make(chan *fixture.IncomingCall, 8)
	ada := s.AddHandset("Ada", rings)
	var called []*fixture.Handset
	for i := range 20 { // a destination may be called once a second
		called = append(called, s.AddHandset(fmt.Sprint("Bob", i), rings))
	}
	for i := range 100 {
		bob := called[i%len(called)]
		var made struct{ ID string }
		rig.Until(t, "a call within the limit of calls a second", 0, func() bool {
			r := s.Do("POST", "/calls", map[string]any{"to": "ext:" + bob.User.Extension, "user_id": ada.User.ID})
			return r.Status == 201 && json.Unmarshal(r.Body, &made) == nil
		})
		first := fixture.NextRinging(t, rings)
		first.Answer()
		second := fixture.NextRinging(t, rings)
		var both sync.WaitGroup
		both.Go(func() {
			<-time.After(jitter())
			_ = second.Inbound.Answer(fixture.HandsetOffer) // the call may be over already
		})
		<-time.After(jitter())
		s.Want(200, "POST", "/calls/"+made.ID+"/end", map[string]any{}, nil)
		both.Wait()
		first.WaitStopped()
		second.WaitStopped()
	}
}

// jitter returns up to 6 ms, about the time from the INVITE to the answer.
func jitter() time.Duration { return rand.N(6 * time.Millisecond) }
