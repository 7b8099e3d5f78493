package trunk

import (
	"sync"
	"time"
)

// health holds the state of trunks as reported by signalling. It is in memory only: after a restart it is reported
// again.
type health struct {
	mu     sync.Mutex // guards trunks
	trunks map[string]*condition
}

// trunkHealth is the state of one trunk.
type condition struct {
	login    *Registration
	asked    bool // at least one probe has had a result
	down     bool
	good     int // answered probes in a row
	bad      int // failed probes in a row
	slow     bool
	rtt      time.Duration
	lastFail string
}

// A trunk changes its state after several probes in a row, so that one lost packet does not change it.
const (
	badUntilDown = 3
	goodUntilUp  = 2
	slowFrom     = time.Second // an answer that takes longer makes a trunk degraded
)

func newHealth() health { return health{trunks: map[string]*condition{}} }

func (h *health) at(trunkID string) *condition {
	c := h.trunks[trunkID]
	if c == nil {
		c = &condition{}
		h.trunks[trunkID] = c
	}
	return c
}

// SetRegistration stores the state of a trunk's registration.
func (s *Service) Registered(trunkID string, r Registration) {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	s.health.at(trunkID).login = &r
}

// RecordProbe stores the result of an OPTIONS request to a trunk: the round-trip time, or the error.
func (s *Service) Probed(trunkID string, rtt time.Duration, err error) {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	s.health.at(trunkID).probed(rtt, err)
}

// Forget removes the state of a trunk that was deleted or disabled.
func (s *Service) Forget(trunkID string) {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	delete(s.health.trunks, trunkID)
}

func (c *condition) probed(rtt time.Duration, err error) {
	c.asked = true
	if err != nil {
		c.good, c.lastFail = 0, err.Error()
		if c.bad++; c.bad >= badUntilDown {
			c.down = true
		}
		return
	}
	c.bad, c.rtt, c.slow = 0, rtt, rtt > slowFrom
	if c.good++; c.good >= goodUntilUp {
		c.down = false
	}
}

// status returns the published status. A trunk without a failure is up, also before its first probe.
func (c *condition) status(t Trunk) string {
	switch {
	case !t.Enabled:
		return "disabled"
	case c.down, t.Kind == "register" && c.login != nil && c.login.Status == "failed":
		return "down"
	case t.Kind == "register" && (c.login == nil || c.login.Status != "registered"), c.bad > 0, c.slow:
		return "degraded"
	}
	return "up"
}

// fillStatus sets the fields of a trunk that come from health.
func (h *health) read(t *Trunk) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.trunks[t.ID]
	if c == nil {
		c = &condition{}
	}
	t.Status = c.status(*t)
	if t.Registration = c.login; t.Kind == "register" && c.login == nil {
		t.Registration = &Registration{Status: "unregistered"}
	}
	t.LastError, t.ProbeMS = nil, nil
	if c.bad > 0 || c.down {
		why := c.lastFail
		t.LastError = &why
	} else if c.login != nil {
		t.LastError = c.login.LastError
	}
	if c.asked && c.bad == 0 {
		ms := int(c.rtt.Milliseconds())
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
