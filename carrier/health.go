package carrier

import (
	"sync"
)

// health keeps what the switch reported of trunks; it is lost with the process, and reported again.
type health struct {
	mu     sync.Mutex // guards the two maps
	login  map[string]Registration
	answer map[string]bool
}

func newHealth() health {
	return health{login: map[string]Registration{}, answer: map[string]bool{}}
}

// Registered reports how the registration of a trunk stands.
func (s *Service) Registered(trunkID string, r Registration) {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	s.health.login[trunkID] = r
}

// Answering reports whether a trunk answers (OPTIONS, or a call).
func (s *Service) Answering(trunkID string, yes bool) {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	s.health.answer[trunkID] = yes
}

// of sums up: a trunk nobody complained about is up.
func (h *health) of(t Trunk) (status string, r *Registration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t.Kind == "register" {
		login, known := h.login[t.ID]
		if !known {
			login.Status = "unregistered"
		}
		r = &login
	}
	answers, asked := h.answer[t.ID]
	switch {
	case !t.Enabled:
		return "disabled", r
	case asked && !answers:
		return "down", r
	case r != nil && r.Status == "failed":
		return "down", r
	case r != nil && r.Status != "registered":
		return "degraded", r
	}
	return "up", r
}
