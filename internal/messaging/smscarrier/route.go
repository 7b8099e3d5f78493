package smscarrier

import (
	"context"
	"slices"
	"strings"
	"time"
)

// Route selects the carrier for a message: of the carriers for this sender number the one with the longest matching
// prefix, then the one with the lowest priority. Carriers that do not work now come last. It returns "" if no carrier
// matches. Carriers in without are skipped.
func (s *Service) Route(ctx context.Context, org, from, to string, without ...string) (id string, err error) {
	all, err := s.enabledClients(ctx, org)
	if err != nil {
		return "", err
	}
	var chosen *carrierClient
	best := -1
	for _, working := range []bool{true, false} {
		for _, l := range all {
			if fits := l.matchLength(from, to); fits > best && l.working() == working && !slices.Contains(without, l.ID) {
				chosen, best = l, fits
			}
		}
		if chosen != nil {
			return chosen.ID, nil
		}
	}
	return "", nil
}

// failureBackoff is the time for which a failed carrier comes after the others; then it is tried again.
const failureBackoff = time.Minute

// working reports whether the carrier accepted messages when this node last used it.
func (l *carrierClient) working() bool {
	_, binds := l.adapter.(Binder)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lastState.Status == "" || l.lastState.Status == active || !binds && l.lastState.Status == degraded &&
		l.service.cfg.Clock.Now().Sub(l.failedAt) > failureBackoff
}

const lanePrefix = "sms carrier "

// Alternative selects another carrier for a message like Route.
func (s *Service) Alternative(ctx context.Context, org, from, to string, without []string) (id string, err error) {
	return s.Route(ctx, org, from, to, without...)
}

// Lane returns the job lane for the messages of a carrier, so that carriers do not delay each other; "" if it has
// none of its own.
func (s *Service) Lane(id string) string {
	if !strings.HasPrefix(id, "smc_") {
		return ""
	}
	return lanePrefix + id
}

// LaneLimit returns how many messages of a lane this node may send at once. For a carrier that needs a connection it
// is 0 while there is none. It does not block.
func (s *Service) LaneLimit(lane string) int {
	id, ok := strings.CutPrefix(lane, lanePrefix)
	if !ok {
		return defaultLaneLimit
	}
	l := s.findClient(id)
	if l == nil { // the first message opens the client
		return 1
	}
	if b, binds := l.adapter.(Binder); binds && (!s.holdsConnection(id) || b.State() != nil) {
		return 0
	}
	return l.concurrency()
}

// defaultLaneLimit limits the messages sent at once for an organisation without a connected carrier.
const defaultLaneLimit = 4
