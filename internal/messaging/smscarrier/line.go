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
type line struct {
	Carrier
	adapter Adapter
	room    *Service

	mu      sync.Mutex // guards the fields below
	told    state      // state that was stored last
	failed  time.Time  // time of the last failure
	quiet   time.Time  // no messages are sent before
	strikes int        // failed messages in a row
}

// clientTable has the open clients of this process.
type opened struct {
	mu    sync.Mutex // guards lines
	lines map[string]*line
}

// openClient returns the open client of a carrier, or opens it. If the carrier has changed, it is opened again.
func (s *Service) line(c Carrier) (*line, error) {
	s.opened.mu.Lock()
	defer s.opened.mu.Unlock()
	if l := s.opened.lines[c.ID]; l != nil && !l.UpdatedAt.Before(c.UpdatedAt.Time) {
		return l, nil
	}
	p, ok := providerOf(c.Provider)
	if !ok {
		return nil, fmt.Errorf("provider %s is not built in", c.Provider)
	}
	a, wrong := p.build(s, s.facts(c, p), c.secret.Settings)
	if len(wrong) > 0 {
		return nil, fmt.Errorf("settings of carrier %s: %s: %s", c.ID, wrong[0].Field, wrong[0].Message)
	}
	if s.opened.lines == nil {
		s.opened.lines = map[string]*line{}
	}
	l := &line{Carrier: c, adapter: a, room: s}
	s.opened.lines[c.ID] = l
	return l, nil
}

// findClient returns the open client of a carrier; nil if there is none.
func (s *Service) look(id string) *line {
	s.opened.mu.Lock()
	defer s.opened.mu.Unlock()
	return s.opened.lines[id]
}

// removeClient removes the client of a carrier that no longer exists.
func (s *Service) forget(id string) {
	s.opened.mu.Lock()
	defer s.opened.mu.Unlock()
	delete(s.opened.lines, id)
}

// enabledClients returns the clients of an organisation's enabled carriers by priority. It is cached.
func (s *Service) enabled(ctx context.Context, org string) ([]*line, error) {
	return s.known.Get(org, func() (out []*line, err error) {
		free := db.Detached(ctx)
		all, err := s.carriers(free, s.DB.Read(free), org)
		if err != nil {
			return nil, err
		}
		for _, c := range all {
			if !c.Enabled {
				continue
			}
			l, err := s.line(c)
			if err != nil {
				s.Log.Error("SMS carrier cannot be used", "org", org, "carrier", c.ID, "err", err)
				continue
			}
			out = append(out, l)
		}
		return out, nil
	})
}

// Connected returns an enabled carrier of an organisation; nil if it has none with this id.
func (s *Service) Connected(ctx context.Context, org, id string) (sms.Carrier, error) {
	all, err := s.enabled(ctx, org)
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
func (l *line) Rates() (all, number float64) { return l.RatePerSecond, l.NumberRate }

// Send submits a message and records the result.
func (l *line) Send(ctx context.Context, o sms.Outgoing) (sms.Result, error) {
	r, err := l.adapter.Send(ctx, o)
	l.learn(ctx, err)
	return r, err
}

// QueryStatus returns the state of a message, if the carrier can report it.
func (l *line) Ask(ctx context.Context, o sms.Outgoing) (sms.Result, error) {
	a, ok := l.adapter.(Asker)
	if !ok {
		return sms.Result{}, sms.ErrUnknown
	}
	return a.Ask(ctx, o)
}

// maxBusy bounds the time for which a carrier can ask for no messages.
const longestQuiet = 10 * time.Minute

// recordResult records the result of a message. A busy carrier gets no messages until its time; a failing one gets
// fewer at once.
func (l *line) learn(ctx context.Context, err error) {
	var busy *sms.Busy
	l.mu.Lock()
	switch {
	case errors.As(err, &busy):
		l.quiet = l.room.Now().Add(min(busy.After, longestQuiet))
	case err == nil:
		l.strikes = 0
	default:
		l.strikes++
		l.failed = l.room.Now()
	}
	l.mu.Unlock()
	if busy == nil && ctx.Err() == nil {
		if p, _ := providerOf(l.Provider); !p.binds { // for adapters with a connection, the state is that of the connection
			l.room.seen(ctx, l, err)
		}
	}
}

// maxConcurrent limits the messages that are sent to a carrier at once.
const atOnce = 32

// concurrency returns how many messages may be sent to the carrier at once now. It halves with each failure in a row.
func (l *line) limit() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.room.Now().Before(l.quiet) {
		return 0
	}
	return max(1, atOnce>>min(l.strikes, 8))
}
