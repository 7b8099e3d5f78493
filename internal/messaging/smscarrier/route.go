package smscarrier

import (
	"context"
	"slices"
	"strings"
	"time"
)

// Route chooses who takes a message: of the carriers that take those from this number the one with the longest prefix, then the
// lowest priority. Carriers that do not work now come last. "" where none takes it. Those in without are left out.
func (s *Service) Route(ctx context.Context, org, from, to string, without ...string) (id string, err error) {
	all, err := s.enabled(ctx, org)
	if err != nil {
		return "", err
	}
	var chosen *line
	best := -1
	for _, working := range []bool{true, false} {
		for _, l := range all {
			if fits := l.takes(from, to); fits > best && l.working() == working && !slices.Contains(without, l.ID) {
				chosen, best = l, fits
			}
		}
		if chosen != nil {
			return chosen.ID, nil
		}
	}
	return "", nil
}

// shunned is how long a carrier that failed comes after others; then it gets another message.
const shunned = time.Minute

// working reports whether the carrier took messages when that was last seen on this node.
func (l *line) working() bool {
	_, binds := l.adapter.(Binder)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.told.Status == "" || l.told.Status == active || !binds && l.told.Status == degraded && l.room.Now().Sub(l.failed) > shunned
}

const lanePrefix = "sms carrier "

// Lane is where messages for a carrier wait, so that one carrier holds up none of another; "" where it has none of its own.
func (s *Service) Lane(id string) string {
	if !strings.HasPrefix(id, "smc_") {
		return ""
	}
	return lanePrefix + id
}

// LaneLimit is how many messages of a lane may be sent at once by this node: of carriers that want a connection, none while it has
// none. It waits for nothing.
func (s *Service) LaneLimit(lane string) int {
	id, ok := strings.CutPrefix(lane, lanePrefix)
	if !ok {
		return otherLanes
	}
	l := s.look(id)
	if l == nil { // the first message opens it
		return 1
	}
	if b, binds := l.adapter.(Binder); binds && (!s.held(id) || b.State() != nil) {
		return 0
	}
	return l.limit()
}

// otherLanes is how many messages of an organisation that no connected carrier takes are sent at once.
const otherLanes = 4
