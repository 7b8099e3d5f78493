package sip

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/protocol/sip/transport"
)

// Flow to a registered phone (RFC 5626, RFC 3327); NAT keep-alives: OPTIONS to phones behind NAT that registered by UDP; browsers that
// are gone.

// bindingFlow returns the flow to a registered phone. A phone with a connection is reached by that connection only,
// unless it registered through a proxy.
func (s *Server) bindingFlow(b *Binding) transport.Flow {
	f := transport.Flow{Addr: b.Source}
	if !b.Transport.IsConnection() {
		return f
	}
	if f.Conn = s.layer.ConnByID(b.Flow); f.Conn != nil {
		return f
	}
	if f, ok := s.proxyFlow(b); ok {
		return f
	}
	f.Conn = transport.NewClosedConn(s.layer, transport.ConnKey{Transport: b.Transport, Addr: b.Source})
	return f
}

// proxyFlow returns the flow to the proxy that a phone registered through (RFC 3327 §5.3).
func (s *Server) proxyFlow(b *Binding) (transport.Flow, bool) {
	if len(b.Path) == 0 {
		return transport.Flow{}, false
	}
	u, err := sipmsg.ParseURI(b.Path[0])
	addr, ok := sipmsg.LiteralAddr(u)
	if err != nil || !ok || u.Transport().IsWebSocket() || !s.maySendTo(addr, b.Source) {
		return transport.Flow{}, false
	}
	return s.layer.FlowTo(u.Transport(), addr, u.Host), true
}

// maySendTo reports whether a request may be sent to an address that a peer named: its own, or one that
// Config.Targets allows.
func (s *Server) maySendTo(named, source netip.AddrPort) bool {
	return named.Addr() == source.Addr() || s.locator.CheckTarget(named) == nil
}

// Reachable reports whether a call can be sent to b: always for UDP and through a proxy, otherwise while its
// connection is open.
func (s *Server) Reachable(b Binding) bool {
	if !b.Transport.IsConnection() || len(b.Path) > 0 {
		return true
	}
	c := s.layer.ConnByID(b.Flow)
	return c != nil && c.IsOpen()
}

// IsElsewhere reports whether another server received the registration, and holds its connection or is the one that a
// router lets in.
func (s *Server) IsElsewhere(b Binding) bool { return b.Node != "" && b.Node != s.config.Node }

// hasLostFlow reports whether the connection of a binding has ended. Only the server that held it can know.
func (s *Server) hasLostFlow(b Binding) bool { return !s.IsElsewhere(b) && !s.Reachable(b) }

// ownBindings returns the bindings that this server received, for which it keeps routers open.
func (s *Server) ownBindings(all []Binding) []Binding {
	return slices.DeleteFunc(slices.Clone(all), s.IsElsewhere)
}

// liveBindings returns the bindings that calls can be sent to. A closed flow removes its binding (RFC 5626 §6).
func (s *Server) liveBindings(all []Binding, now time.Time) []Binding {
	return slices.DeleteFunc(slices.Clone(all), func(b Binding) bool { return !b.Expires.After(now) || s.hasLostFlow(b) })
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

// flowTimer is the interval at which a phone must send keep-alives over its flow (RFC 5626 §5.4).
const flowTimer = 2 * time.Minute

// keepsFlow reports whether a REGISTER is for an outbound flow (RFC 5626 §6).
func (r *registerRequest) keepsFlow() bool {
	return r.outbound && slices.ContainsFunc(r.contacts, func(c string) bool {
		a, _ := sipmsg.ReadAddress(c)
		_, instance := sipmsg.ParamOf(a.Params, "+sip.instance")
		_, reg := sipmsg.ParamOf(a.Params, "reg-id")
		return instance && reg
	})
}

// natKeepalives holds the NAT bindings of phones that registered by UDP from behind a router. Routers drop idle
// bindings, many after 30 s (RFC 4787 §4.3), and then no call reaches the phone. So each phone regularly gets an
// OPTIONS request. Its response, whatever the status, also keeps bindings open that only outgoing packets refresh.
type natKeepalives struct {
	mu  sync.Mutex               // guards all
	all map[natBinding]time.Time // until when they are kept open: the end of the registration
}

// natBinding is one registration from behind NAT. Several accounts of one phone may have the same source.
type natBinding struct {
	source  netip.AddrPort
	contact string
}

const (
	// natKeepaliveSlots is the number of groups into which the requests of one interval are split.
	natKeepaliveSlots = 10
	maxNATKeepalives  = 1 << 17
)

// replace removes the entries of old bindings and adds those of new ones.
func (p *natKeepalives) replace(old, next []Binding) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range old {
		delete(p.all, natBinding{b.Source, b.Contact})
	}
	for _, b := range next {
		if !b.behindNAT() || len(p.all) >= maxNATKeepalives {
			continue
		}
		if p.all == nil {
			p.all = map[natBinding]time.Time{}
		}
		p.all[natBinding{b.Source, b.Contact}] = b.Expires
	}
}

// behindNAT reports whether a phone registered by UDP from another address than its Contact, the sign of a router in
// between.
func (b Binding) behindNAT() bool {
	if b.Transport != sipmsg.UDP || len(b.Path) > 0 || !b.Source.IsValid() {
		return false
	}
	u, err := sipmsg.ParseURI(b.Contact)
	said, ok := sipmsg.LiteralAddr(u)
	return err != nil || !ok || said != b.Source
}

// runNATKeepalives sends keep-alives until the server closes, one group of phones at a time.
func (s *Server) runNATKeepalives() {
	if s.config.NATKeepalive <= 0 {
		return
	}
	tick := time.NewTicker(max(s.config.NATKeepalive/natKeepaliveSlots, time.Millisecond))
	defer tick.Stop()
	for slot := uint64(0); ; slot = (slot + 1) % natKeepaliveSlots {
		select {
		case <-s.done:
			return
		case <-tick.C:
		}
		for source, contact := range s.natKeepalives.dueEntries(s.config.Now(),
			func(a netip.AddrPort) bool { return s.slotOf(a) == slot }) {
			s.sendNATKeepalive(source, contact)
		}
	}
}

func (s *Server) slotOf(a netip.AddrPort) uint64 {
	return hashParts(s.hasher.a, []string{a.String()}) % natKeepaliveSlots
}

// dueEntries returns the sources of the current group, each with one contact, and removes expired entries.
func (p *natKeepalives) dueEntries(now time.Time, turn func(netip.AddrPort) bool) map[netip.AddrPort]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	due := map[netip.AddrPort]string{}
	for b, until := range p.all {
		switch {
		case !until.After(now):
			delete(p.all, b)
		case turn(b.source):
			due[b.source] = b.contact
		}
	}
	return due
}

// sendNATKeepalive sends one OPTIONS without a transaction: it is not retransmitted, and the response is dropped.
func (s *Server) sendNATKeepalive(source netip.AddrPort, contact string) {
	f := transport.Flow{Addr: source}
	s.layer.Send(f, s.writeOutOfDialog(&outOfDialogRequest{
		method: "OPTIONS", uri: contact, callID: sipmsg.NewCallID(), seq: 1, flow: f,
		from: "<sip:" + s.layer.SentBy(f) + ">;tag=" + sipmsg.NewTag(), to: "<" + contact + ">",
	}, rand.Uint64()))
}

// Browsers that are gone: a closed page sends no REGISTER that ends its registration. Its WebSocket ends, or does not answer pings.

// browserFlows holds the accounts that registered over open WebSockets.
type browserFlows struct {
	mu       sync.Mutex // guards accounts
	accounts map[*transport.Conn][]string
}

func (b *browserFlows) add(c *transport.Conn, account string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.accounts == nil {
		b.accounts = map[*transport.Conn][]string{}
	}
	if !slices.Contains(b.accounts[c], account) {
		b.accounts[c] = append(b.accounts[c], account)
	}
}

// take returns the accounts of a connection and forgets it.
func (b *browserFlows) take(c *transport.Conn) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	accounts := b.accounts[c]
	delete(b.accounts, c)
	return accounts
}

// noteBrowser records that an account registered over a WebSocket.
func (s *Server) noteBrowser(r *registerRequest, account string) {
	if s.limits.BrowserTimeout <= 0 || !r.conn.Transport().IsWebSocket() {
		return
	}
	s.browserFlows.add(r.conn, account)
	if !r.conn.IsOpen() { // it ended before it was recorded
		s.awaitBrowser(r.conn)
	}
}

// awaitBrowser gives the browsers that registered over an ended connection time to register again, as after the page is loaded again.
// Then it ends the registrations that are left without a connection.
func (s *Server) awaitBrowser(c *transport.Conn) {
	accounts := s.browserFlows.take(c)
	if len(accounts) == 0 || s.ctx.Err() != nil {
		return
	}
	ended := s.config.Now()
	s.workers.Go(func() {
		timer := time.NewTimer(s.limits.BrowserTimeout)
		defer timer.Stop()
		select {
		case <-s.done:
			return
		case <-timer.C:
		}
		for _, account := range accounts {
			if err := s.dropLostBindings(account, ended); err != nil {
				s.logFailure("end the registration of a browser that is gone", err)
			}
		}
	})
}

// dropLostBindings removes the bindings of an account whose connections to this server have ended, the last one at a time.
func (s *Server) dropLostBindings(account string, ended time.Time) error {
	ctx, cancel := context.WithTimeout(s.ctx, lookupTimeout)
	defer cancel()
	lock := s.accountLocks.forAccount(s.hasher, account)
	lock.Lock()
	defer lock.Unlock()
	all, err := s.config.Bindings.Load(ctx, account)
	if err != nil {
		return fmt.Errorf("load bindings of %s: %w", account, err)
	}
	if !slices.ContainsFunc(all, s.hasLostFlow) {
		return nil // it came back
	}
	if err := s.config.Bindings.Lose(ctx, account, s.liveBindings(all, s.config.Now()), ended); err != nil {
		return fmt.Errorf("save bindings of %s: %w", account, err)
	}
	return nil
}

// saveBindings replaces the bindings of an account after a REGISTER. A browser that cannot take calls for now is lost.
func (s *Server) saveBindings(ctx context.Context, account string, r *registerRequest, next []Binding, now time.Time) error {
	if r.unavailable {
		return s.config.Bindings.Lose(ctx, account, next, now)
	}
	return s.config.Bindings.Save(ctx, account, next)
}

// hasUnavailableReason reports whether a Reason field (RFC 3326) has the status 480: temporarily unavailable.
func hasUnavailableReason(reasons []string) bool {
	return slices.ContainsFunc(reasons, func(reason string) bool {
		protocol, params, _ := strings.Cut(reason, ";")
		cause, _ := sipmsg.ParamOf(";"+params, "cause")
		return strings.EqualFold(strings.TrimSpace(protocol), "SIP") && cause == "480"
	})
}
