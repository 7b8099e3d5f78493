package smscarrier

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"soniq/internal/messaging/sms"
	"soniq/internal/platform/db"
)

// carrierClient is an opened carrier. It implements sms.Carrier and sms.RateLimited.
type carrierClient struct {
	Carrier
	adapter Adapter
	service *Service

	mu        sync.Mutex   // guards the fields below
	lastState carrierState // state that was stored last
	failedAt  time.Time    // time of the last failure
	busyUntil time.Time    // no messages are sent before
	failures  int          // failed messages in a row
}

// clientTable has the open clients of this process.
type clientTable struct {
	mu   sync.Mutex // guards lines
	byID map[string]*carrierClient
}

// openClient returns the open client of a carrier, or opens it. If the carrier has changed, it is opened again.
func (s *Service) openClient(c Carrier) (*carrierClient, error) {
	s.clients.mu.Lock()
	defer s.clients.mu.Unlock()
	if l := s.clients.byID[c.ID]; l != nil && !l.UpdatedAt.Before(c.UpdatedAt.Time) {
		return l, nil
	}
	p, ok := providerOf(c.Provider)
	if !ok {
		return nil, fmt.Errorf("provider %s is not built in", c.Provider)
	}
	a, wrong := p.build(s, s.carrierInfo(c, p), c.secret.Settings)
	if len(wrong) > 0 {
		return nil, fmt.Errorf("settings of carrier %s: %s: %s", c.ID, wrong[0].Field, wrong[0].Message)
	}
	if s.clients.byID == nil {
		s.clients.byID = map[string]*carrierClient{}
	}
	l := &carrierClient{Carrier: c, adapter: a, service: s}
	s.clients.byID[c.ID] = l
	return l, nil
}

// findClient returns the open client of a carrier; nil if there is none.
func (s *Service) findClient(id string) *carrierClient {
	s.clients.mu.Lock()
	defer s.clients.mu.Unlock()
	return s.clients.byID[id]
}

// removeClient removes the client of a carrier that no longer exists.
func (s *Service) removeClient(id string) {
	s.clients.mu.Lock()
	defer s.clients.mu.Unlock()
	delete(s.clients.byID, id)
}

// enabledClients returns the clients of an organisation's enabled carriers by priority. It is cached.
func (s *Service) enabledClients(ctx context.Context, org string) ([]*carrierClient, error) {
	return s.clientCache.Get(org, func() (out []*carrierClient, err error) {
		free := db.Detached(ctx)
		all, err := s.carriers(free, s.cfg.DB.Read(free), org)
		if err != nil {
			return nil, err
		}
		for _, c := range all {
			if !c.Enabled {
				continue
			}
			l, err := s.openClient(c)
			if err != nil {
				s.cfg.Log.Error("SMS carrier cannot be used", "org", org, "carrier", c.ID, "err", err)
				continue
			}
			out = append(out, l)
		}
		return out, nil
	})
}

// Connected returns an enabled carrier of an organisation; nil if it has none with this id.
func (s *Service) Connected(ctx context.Context, org, id string) (sms.Carrier, error) {
	all, err := s.enabledClients(ctx, org)
	if err != nil {
		return nil, err
	}
	for _, l := range all {
		if l.ID == id {
			return l, nil
		}
	}
	return nil, nil
}

// Rates returns the limits in segments per second: of the carrier, and of one sender number.
func (l *carrierClient) Rates() (all, number float64) { return l.RatePerSecond, l.NumberRate }

// Send submits a message and records the result.
func (l *carrierClient) Send(ctx context.Context, o sms.Outgoing) (sms.Result, error) {
	r, err := l.adapter.Send(ctx, o)
	l.recordResult(ctx, err)
	return r, err
}

// QueryStatus returns the state of a message, if the carrier can report it.
func (l *carrierClient) QueryStatus(ctx context.Context, o sms.Outgoing) (sms.Result, error) {
	a, ok := l.adapter.(StatusQuerier)
	if !ok {
		return sms.Result{}, sms.ErrOutcomeUnknown
	}
	return a.QueryStatus(ctx, o)
}

// maxBusy bounds the time for which a carrier can ask for no messages.
const maxBusy = 10 * time.Minute

// recordResult records the result of a message. A busy carrier gets no messages until its time; a failing one gets
// fewer at once.
func (l *carrierClient) recordResult(ctx context.Context, err error) {
	var busy *sms.BusyError
	l.mu.Lock()
	switch {
	case errors.As(err, &busy):
		l.busyUntil = l.service.cfg.Clock.Now().Add(min(busy.After, maxBusy))
	case err == nil:
		l.failures = 0
	default:
		l.failures++
		l.failedAt = l.service.cfg.Clock.Now()
	}
	l.mu.Unlock()
	if busy == nil && ctx.Err() == nil {
		if p, _ := providerOf(l.Provider); !p.hasConnection { // for adapters with a connection, the state is that of the connection
			l.service.recordState(ctx, l, err)
		}
	}
}

// maxConcurrent limits the messages that are sent to a carrier at once.
const maxConcurrent = 32

// concurrency returns how many messages may be sent to the carrier at once now. It halves with each failure in a row.
func (l *carrierClient) concurrency() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.service.cfg.Clock.Now().Before(l.busyUntil) {
		return 0
	}
	return max(1, maxConcurrent>>min(l.failures, 8))
}
