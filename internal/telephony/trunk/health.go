package trunk

import (
	"sync"
	"time"
)

// health holds the state of trunks as reported by signalling. It is in memory only: after a restart it is reported
// again.
type health struct {
	mu     sync.Mutex // guards trunks
	trunks map[string]*trunkHealth
}

// trunkHealth is the state of one trunk.
type trunkHealth struct {
	registration *Registration
	hasResult    bool // at least one probe has had a result
	down         bool
	successes    int // answered probes in a row
	failures     int // failed probes in a row
	slow         bool
	roundTrip    time.Duration
	lastFailure  string
}

// A trunk changes its state after several probes in a row, so that one lost packet does not change it.
const (
	failuresUntilDown = 3
	successesUntilUp  = 2
	slowThreshold     = time.Second // an answer that takes longer makes a trunk degraded
)

func newHealth() health { return health{trunks: map[string]*trunkHealth{}} }

func (h *health) entry(trunkID string) *trunkHealth {
	c := h.trunks[trunkID]
	if c == nil {
		c = &trunkHealth{}
		h.trunks[trunkID] = c
	}
	return c
}

// SetRegistration stores the state of a trunk's registration.
func (s *Service) SetRegistration(trunkID string, r Registration) {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	s.health.entry(trunkID).registration = &r
}

// RecordProbe stores the result of an OPTIONS request to a trunk: the round-trip time, or the error.
func (s *Service) RecordProbe(trunkID string, rtt time.Duration, err error) {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	s.health.entry(trunkID).recordProbe(rtt, err)
}

// Forget removes the state of a trunk that was deleted or disabled.
func (s *Service) Forget(trunkID string) {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	delete(s.health.trunks, trunkID)
}

func (c *trunkHealth) recordProbe(rtt time.Duration, err error) {
	c.hasResult = true
	if err != nil {
		c.successes, c.lastFailure = 0, err.Error()
		if c.failures++; c.failures >= failuresUntilDown {
			c.down = true
		}
		return
	}
	c.failures, c.roundTrip, c.slow = 0, rtt, rtt > slowThreshold
	if c.successes++; c.successes >= successesUntilUp {
		c.down = false
	}
}

// status returns the published status. Before its first probe a trunk that does not register is unknown.
func (c *trunkHealth) status(t Trunk) string {
	switch {
	case !t.Enabled:
		return "disabled"
	case c.down, t.Kind == "register" && c.registration != nil && c.registration.Status == "failed":
		return "down"
	case t.Kind == "register" && (c.registration == nil || c.registration.Status != "registered"), c.failures > 0, c.slow:
		return "degraded"
	case t.Kind != "register" && !c.hasResult:
		return "unknown"
	}
	return "up"
}

// fillStatus sets the fields of a trunk that come from health.
func (h *health) fillStatus(t *Trunk) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.trunks[t.ID]
	if c == nil {
		c = &trunkHealth{}
	}
	t.Status = c.status(*t)
	if t.Registration = c.registration; t.Kind == "register" && c.registration == nil {
		t.Registration = &Registration{Status: "unregistered"}
	}
	t.LastError, t.ProbeMS = nil, nil
	if c.failures > 0 || c.down {
		why := c.lastFailure
		t.LastError = &why
	} else if c.registration != nil {
		t.LastError = c.registration.LastError
	}
	if c.hasResult && c.failures == 0 {
		ms := int(c.roundTrip.Milliseconds())
		t.ProbeMS = &ms
	}
}

// isDown reports whether calls should try other trunks first.
func (h *health) isDown(t Trunk) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.trunks[t.ID]
	return c != nil && c.status(t) == "down"
}
