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
	begun   []fact // under way
}

// fact is something to write down. Writing it twice must have the effect of once: a failed write may have been one whose answer
// was lost.
type fact struct {
	what  string
	write func(ctx context.Context) error
	wait  func() error // while it is under way
	told  bool         // its first failure was logged
}

// The times between tries, and the longest a try may take.
const (
	firstRetry   = 200 * time.Millisecond
	lastRetry    = 15 * time.Second
	writeTimeout = 10 * time.Second
)

// write writes a fact after all before it, or keeps it.
func (l *ledger) write(ctx context.Context, what string, write func(ctx context.Context) error) {
	f := fact{what: what, write: write}
	if len(l.pending) == 0 && len(l.begun) > 0 { // it shares the commit of what is under way
		if err := l.try(ctx, &f); err != nil {
			defer func() { l.pending = append(l.pending, f) }()
		}
		l.land(ctx)
		return
	}
	l.pending = append(l.pending, f)
	l.flush(ctx)
}

// start begins to write a fact after all before it. Whether it was written is seen to with the next one, which does not wait
// for it.
func (l *ledger) start(ctx context.Context, what string, start func(ctx context.Context) (wait func() error)) {
	f := fact{what: what, write: func(ctx context.Context) error { return start(ctx)() }}
	if len(l.pending) > 0 {
		l.pending = append(l.pending, f)
		l.flush(ctx)
		return
	}
	limited, cancel := context.WithTimeout(ctx, writeTimeout)
	wait := start(limited)
	f.wait = func() error { defer cancel(); return wait() }
	l.begun = append(l.begun, f)
}

// land sees what became of what is under way; what could not be written is tried again.
func (l *ledger) land(ctx context.Context) {
	for _, f := range l.begun {
		if err := f.wait(); err != nil {
			l.tell(&f, err)
			l.pending = append(l.pending, f)
		}
	}
	l.begun = nil
	l.flush(ctx)
}

func (l *ledger) try(ctx context.Context, f *fact) error {
	limited, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err := f.write(limited)
	if err != nil {
		l.tell(f, err)
	}
	return err
}

// flush writes what is kept and reports whether all is written.
func (l *ledger) flush(ctx context.Context) bool {
	for len(l.pending) > 0 {
		f := &l.pending[0]
		if l.try(ctx, f) != nil {
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
	l.land(ctx)
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
