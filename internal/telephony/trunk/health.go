package trunk

import (
	"sync"
	"time"
)

// health keeps what signalling reported of trunks; it is lost with the process, and reported again.
type health struct {
	mu     sync.Mutex // guards of
	trunks map[string]*condition
}

// condition is how one trunk does.
type condition struct {
	login    *Registration
	asked    bool // whether any probe came back
	down     bool
	good     int // probes in a row that were answered
	bad      int // and that were not
	slow     bool
	rtt      time.Duration
	lastFail string
}

// The probes in a row that turn a trunk, so that one lost packet does not.
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

// Registered reports how the registration of a trunk stands.
func (s *Service) Registered(trunkID string, r Registration) {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	s.health.at(trunkID).login = &r
}

// Probed reports an OPTIONS request to a trunk: how long its answer took, or why there was none.
func (s *Service) Probed(trunkID string, rtt time.Duration, err error) {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	s.health.at(trunkID).probed(rtt, err)
}

// Forget drops what is known of a trunk that is gone, or switched off.
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

// status sums up: a trunk nobody complained about is up.
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

// read fills in how the trunk does.
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

// down reports whether calls should try other trunks first.
func (h *health) isDown(t Trunk) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.trunks[t.ID]
	return c != nil && c.status(t) == "down"
}
