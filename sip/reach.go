package sip

// bindingFlow is the way back to a registered phone. One with a connection is
// reached by that or not at all.
func (s *Server) bindingFlow(b *Binding) flow {
	f := flow{addr: b.Source}
	if !b.Transport.stream() {
		return f
	}
	if f.conn = s.streams.flow(b.Flow); f.conn == nil {
		f.conn = lostConn(s, connKey{kind: b.Transport, addr: b.Source})
	}
	return f
}

// Reachable tells whether a call can be sent to b: always for UDP, else while
// its connection is open.
func (s *Server) Reachable(b Binding) bool {
	if !b.Transport.stream() {
		return true
	}
	c := s.streams.flow(b.Flow)
	return c != nil && c.open()
}
