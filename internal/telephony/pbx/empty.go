package pbx

import (
	"context"
	"time"

	"soniq/internal/telephony/call"
)

// emptyPoll is how often it is looked whether the calls of an organisation are over.
const emptyPoll = 20 * time.Millisecond

// EndOrg hangs up every call of an organisation, also those that come meanwhile, and waits until they are written down, with
// their recordings and stories. It returns how many it hung up; what is left when ctx ends goes on ending by itself.
func (s *Switch) EndOrg(ctx context.Context, org string) (ended int, err error) {
	told := map[string]bool{}
	tick := time.NewTicker(emptyPoll)
	defer tick.Stop()
	for s.hangUpOrg(org, told) > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return len(told), ctx.Err()
		}
	}
	return len(told), nil
}

// hangUpOrg hangs up the calls of an organisation that were not told yet, and returns how many calls are not written down.
func (s *Switch) hangUpOrg(org string, told map[string]bool) (left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, c := range s.calls {
		if c.orgNow() != org {
			continue
		}
		left++
		if told[id] {
			continue
		}
		told[id] = true
		c.inbox.push(message{run: func(context.Context) {
			c.hangUpAll(call.Outcome{Reason: "api", HangupBy: "api"}, normalClearing)
		}})
	}
	for _, c := range s.ending {
		if c.orgNow() == org {
			left++
		}
	}
	return left
}
