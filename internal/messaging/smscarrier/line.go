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

// A line is an opened carrier. It is what the room of messages sends with.
type line struct {
	Carrier
	adapter Adapter
	room    *Service

	mu      sync.Mutex // guards what follows
	told    state      // what was kept last
	failed  time.Time  // when it did not work last
	quiet   time.Time  // it takes nothing before
	strikes int        // messages in a row that were not answered
}

// opened are the lines of this process.
type opened struct {
	mu    sync.Mutex // guards lines
	lines map[string]*line
}

// line opens a carrier, or finds it open; one that was changed is opened anew.
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

// look finds an open line.
func (s *Service) look(id string) *line {
	s.opened.mu.Lock()
	defer s.opened.mu.Unlock()
	return s.opened.lines[id]
}

// forget closes the line of a carrier that is gone.
func (s *Service) forget(id string) {
	s.opened.mu.Lock()
	defer s.opened.mu.Unlock()
	delete(s.opened.lines, id)
}

// enabled lists the lines of an organisation in the order in which they are asked. It is cached.
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
				s.Log.Error("carrier of messages cannot be used", "org", org, "carrier", c.ID, "err", err)
				continue
			}
			out = append(out, l)
		}
		return out, nil
	})
}

// Connected finds an enabled carrier of an organisation; nil where it has none of this name.
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

// Rates are how many segments the carrier takes in a second, and of those from one number.
func (l *line) Rates() (all, number float64) { return l.RatePerSecond, l.NumberRate }

// Send hands a message over, and learns from how that goes.
func (l *line) Send(ctx context.Context, o sms.Outgoing) (sms.Result, error) {
	r, err := l.adapter.Send(ctx, o)
	l.learn(ctx, err)
	return r, err
}

// Ask finds out what became of a message, where the carrier can tell.
func (l *line) Ask(ctx context.Context, o sms.Outgoing) (sms.Result, error) {
	a, ok := l.adapter.(Asker)
	if !ok {
		return sms.Result{}, sms.ErrUnknown
	}
	return a.Ask(ctx, o)
}

// longestQuiet bounds how long a carrier is left alone because it asked for that.
const longestQuiet = 10 * time.Minute

// learn takes down how a message went: who asked to be left alone is, and who does not answer is given few at a time.
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
		if p, _ := providerOf(l.Provider); !p.binds { // of those that are connected, the connection says how they are
			l.room.seen(ctx, l, err)
		}
	}
}

// atOnce is how many messages a carrier is given at once.
const atOnce = 32

// limit is how many messages the carrier may be given at once now.
func (l *line) limit() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.room.Now().Before(l.quiet) {
		return 0
	}
	return max(1, atOnce>>min(l.strikes, 8))
}
