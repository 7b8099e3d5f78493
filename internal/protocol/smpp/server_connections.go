package smpp

import "slices"

// acquireConnection counts a connection. It returns false if the address has half of the limit already. If all
// connections are taken, the one that has waited longest for a bind is ended; if all are bound, it returns false.
func (s *Server) acquireConnection(source string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sources[source] >= (s.config.Connections+1)/2 {
		return false
	}
	if s.open >= s.config.Connections {
		if len(s.unbound) == 0 {
			return false
		}
		s.unbound[0].session.end(ErrNotBound)
		s.unbound = s.unbound[1:]
	}
	s.open++
	s.sources[source]++
	return true
}

func (s *Server) releaseConnection(source string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	if s.sources[source]--; s.sources[source] == 0 {
		delete(s.sources, source)
	}
}

// awaitBind adds a connection to those without a bind.
func (s *Server) awaitBind(b *binding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unbound = append(s.unbound, b)
}

// endWait removes a connection from those without a bind. The caller holds mu.
func (s *Server) endWait(b *binding) {
	if i := slices.Index(s.unbound, b); i >= 0 {
		s.unbound = slices.Delete(s.unbound, i, i+1)
	}
}
