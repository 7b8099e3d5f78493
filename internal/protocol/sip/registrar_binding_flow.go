package sip

import (
	"cmp"
	"slices"
	"strings"
)

// Flow to a registered phone (RFC 5626, RFC 3327).

// bindingFlow returns the flow to a registered phone. A phone with a connection is reached by that connection only,
// unless it registered through a proxy.
func (s *Server) bindingFlow(b *Binding) flow {
	f := flow{addr: b.Source}
	if !b.Transport.isConnection() {
		return f
	}
	if f.conn = s.conns.connByID(b.Flow); f.conn != nil {
		return f
	}
	if f, ok := s.proxyFlow(b); ok {
		return f
	}
	f.conn = newClosedConn(s, connKey{transport: b.Transport, addr: b.Source})
	return f
}

// proxyFlow returns the flow to the proxy that a phone registered through (RFC 3327 §5.3).
func (s *Server) proxyFlow(b *Binding) (flow, bool) {
	if len(b.Path) == 0 {
		return flow{}, false
	}
	u, err := ParseURI(b.Path[0])
	addr, ok := literalAddr(u)
	if err != nil || !ok || u.transport().isWebSocket() {
		return flow{}, false
	}
	return s.flowTo(u.transport(), addr, u.Host), true
}

// Reachable reports whether a call can be sent to b: always for UDP and through a proxy, otherwise while its
// connection is open.
func (s *Server) Reachable(b Binding) bool {
	if !b.Transport.isConnection() || len(b.Path) > 0 {
		return true
	}
	c := s.conns.connByID(b.Flow)
	return c != nil && c.isOpen()
}

// GroupByPhone groups bindings by phone. Bindings with the same instance are flows of one phone. Use only one of them
// at a time, and the next one if it fails with 430 or 408 (RFC 5626 §7). Phones with the highest Priority come
// first, and within a phone the flow that was refreshed last.
func GroupByPhone(all []Binding) [][]Binding {
	var phones [][]Binding
	at := map[string]int{}
	for _, b := range all {
		instance := b.instanceID()
		if i, ok := at[instance]; ok && instance != "" {
			phones[i] = append(phones[i], b)
			continue
		}
		at[instance] = len(phones)
		phones = append(phones, []Binding{b})
	}
	for _, flows := range phones {
		slices.SortStableFunc(flows, func(a, b Binding) int {
			return cmp.Or(cmp.Compare(b.Priority, a.Priority), b.Registered.Compare(a.Registered))
		})
	}
	slices.SortStableFunc(phones, func(a, b []Binding) int { return cmp.Compare(b[0].Priority, a[0].Priority) })
	return phones
}

// instanceID returns the phone's instance without the flow's reg-id.
func (b Binding) instanceID() string {
	i := strings.LastIndexByte(b.Instance, ';')
	if i < 0 {
		return b.Instance
	}
	return b.Instance[:i]
}
