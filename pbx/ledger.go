package pbx

import (
	"context"
	"log/slog"
	"time"
)

// A ledger writes a call's facts down, in their order. What cannot be written now, because the disk is full or the database
// away, is kept: it is tried again before the next fact, and after the call until it is written.
type ledger struct {
	log     *slog.Logger
	call    string // id, for the log
	pending []fact
}

// fact is something to write down. Writing it twice must have the effect of once: a failed write may have been one whose answer
// was lost.
type fact struct {
	what  string
	write func(ctx context.Context) error
	told  bool // its first failure was logged
}

// The times between tries, and the longest a try may take.
const (
	firstRetry   = 200 * time.Millisecond
	lastRetry    = 15 * time.Second
	writeTimeout = 10 * time.Second
)

// write writes a fact after all before it, or keeps it.
func (l *ledger) write(ctx context.Context, what string, write func(ctx context.Context) error) {
	l.pending = append(l.pending, fact{what: what, write: write})
	l.flush(ctx)
}

// flush writes what is kept and reports whether all is written.
func (l *ledger) flush(ctx context.Context) bool {
	for len(l.pending) > 0 {
		f := &l.pending[0]
		limited, cancel := context.WithTimeout(ctx, writeTimeout)
		err := f.write(limited)
		cancel()
		if err != nil {
			l.tell(f, err)
			return false
		}
		if f.told {
			l.log.Info(f.what+" written after all", "call", l.call)
		}
		*f = fact{} // what is written is not held any longer
		l.pending = l.pending[1:]
	}
	l.pending = nil
	return true
}

func (l *ledger) tell(f *fact, err error) {
	if !f.told {
		f.told = true
		l.log.Error(f.what+" not written yet, it is tried again", "call", l.call, "err", err)
	}
}

// settle returns when everything is written, or ctx ends.
func (l *ledger) settle(ctx context.Context) {
	wait := firstRetry
	for !l.flush(ctx) {
		select {
		case <-ctx.Done():
			l.log.Error(l.pending[0].what+" not written", "call", l.call, "facts", len(l.pending))
			return
		case <-time.After(wait):
			wait = min(2*wait, lastRetry)
		}
	}
}
