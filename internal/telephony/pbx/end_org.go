package pbx

import (
	"context"
	"time"

	"soniq/internal/telephony/call"
)

// emptyPoll is the interval of the check whether the calls of an organisation have ended.
const emptyPoll = 20 * time.Millisecond

// EndOrg hangs up all calls of an organisation, including new ones, and waits until they are written with recordings
// and timelines. It returns the number of calls it hung up. If ctx ends first, the remaining calls still end by
// themselves.
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

// hangUpOrg hangs up the calls of an organisation that are not in told yet. It returns the number of calls that
// are not written.
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
