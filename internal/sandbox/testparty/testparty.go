// Package testparty runs the simulated callers and callees of sandboxes. They are SIP phones on loopback: their calls pass the same switch,
// signalling and media as all others.
package testparty

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"

	"soniq/internal/platform/db"
	"soniq/internal/sandbox/softphone"
	"soniq/internal/telephony/number"
)

// callsPerOrg limits the simultaneous calls of an organisation with test parties.
const callsPerOrg = 10

// Config has what a Service needs.
type Config struct {
	DB      *db.DB
	Numbers Numbers
	Speech  Speech
	Server  Server
	Log     *slog.Logger
}

// Numbers finds a number of an organisation by its id or as people write it.
type Numbers interface {
	FindNumber(ctx context.Context, q db.Querier, org, text string) (number.Number, error)
}

// Speech synthesises a text, and returns the path of the WAV file. An empty voice or language means the default.
type Speech interface {
	File(ctx context.Context, org, text, voice, language string) (path string, err error)
}

// Server returns the address at which SIP listens. It is asked when a call begins.
type Server interface {
	SIPAddr() string
}

// Service runs the test parties. It is safe for concurrent use.
type Service struct {
	c       Config
	callees *softphone.Callees
	limit   limiter

	ctx     context.Context // ends when the service closes
	cancel  context.CancelFunc
	running sync.WaitGroup
	sources sync.Map // netip.AddrPort of a simulated caller to its *simulatedCaller
}

// Open opens the sockets of the callees.
func Open(ctx context.Context, c Config) (*Service, error) {
	callees, err := softphone.OpenCallees(ctx, calleeRoles(), c.Log)
	if err != nil {
		return nil, err
	}
	s := &Service{c: c, callees: callees, limit: limiter{busy: map[string]int{}}}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return s, nil
}

// Close ends the calls of all test parties and waits until they are gone.
func (s *Service) Close() {
	s.cancel()
	s.running.Wait()
	s.callees.Close()
}

// IsCallee reports whether the simulated callees listen at an address.
func (s *Service) IsCallee(a netip.AddrPort) bool { return a.String() == s.callees.Addr() }

// Caller returns the trunk account of the simulated caller that sends from an address.
func (s *Service) Caller(source netip.AddrPort) (account string, ok bool) {
	c, ok := s.callerAt(source)
	if !ok {
		return "", false
	}
	return c.account, true
}

// CallID returns the id that the call from an address gets. ok is false if no simulated caller sends from there, or if its call has the id
// already.
func (s *Service) CallID(source netip.AddrPort) (id string, ok bool) {
	c, ok := s.callerAt(source)
	if !ok || c.called.Swap(true) {
		return "", false
	}
	return c.callID, true
}

// callerAt returns the simulated caller that sends from an address.
func (s *Service) callerAt(source netip.AddrPort) (*simulatedCaller, bool) {
	c, ok := s.sources.Load(netip.AddrPortFrom(source.Addr().Unmap(), source.Port()))
	if !ok {
		return nil, false
	}
	return c.(*simulatedCaller), true
}

// limiter counts the calls of each organisation.
type limiter struct {
	mu   sync.Mutex // guards busy
	busy map[string]int
}

// acquire counts one more call. ok is false if the organisation has reached its limit. release may be called more than once.
func (l *limiter) acquire(org string) (release func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy[org] >= callsPerOrg {
		return nil, false
	}
	l.busy[org]++
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.busy[org]--; l.busy[org] <= 0 {
			delete(l.busy, org)
		}
	}), true
}
