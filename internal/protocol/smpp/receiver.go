package smpp

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// receiver passes received messages to the caller's functions.
type receiver struct {
	text        TextSettings
	textOf      func(account string) TextSettings // nil: text for all accounts
	ids         IDs
	parts       PartStore
	message     func(ctx context.Context, in Incoming) error
	receipt     func(ctx context.Context, r Receipt) error // nil: receipts are passed to message
	newID       func() string                              // nil: messages get no identifier
	errorStatus Status                                     // response to an error that is not a Status
	log         *slog.Logger
}

// statusOf returns the status for an error.
func (r *receiver) statusOf(err error) Status {
	var s Status
	switch {
	case err == nil:
		return OK
	case errors.As(err, &s) && s != OK:
		return s
	}
	r.log.Warn("smpp: a message was not accepted", "error", err)
	return r.errorStatus
}

// textFor returns the text settings of an account.
func (r *receiver) textFor(account string) TextSettings {
	if r.textOf == nil {
		return r.text
	}
	return r.textOf(account)
}

// receive passes a message on, or stores it as a part. It returns the identifier of this part.
func (r *receiver) receive(ctx context.Context, account, bind string, m *Message) (id string, s Status) {
	if r.receipt != nil {
		if receipt, ok := m.receipt(r.text, r.ids); ok {
			return "", r.statusOf(r.receipt(ctx, receipt))
		}
	}
	f, ok := r.textFor(account).fragment(account, m)
	if !ok {
		return "", BadESMClass
	}
	f.At, f.Bind = time.Now(), bind
	if r.newID != nil {
		f.MessageID = r.newID()
	}
	if f.Key.Segment.Total == 0 {
		return f.MessageID, r.statusOf(r.message(ctx, r.textFor(account).incoming([]Fragment{f})))
	}
	return r.collect(ctx, f)
}

// collect stores a part and passes the message on if it is complete.
func (r *receiver) collect(ctx context.Context, f Fragment) (id string, s Status) {
	a, err := r.parts.Add(ctx, f)
	if err != nil {
		return "", r.statusOf(err)
	}
	if a.Complete == nil {
		return a.MessageID, OK
	}
	err = r.message(ctx, r.textFor(f.Key.Account).incoming(a.Complete))
	if done := r.parts.Done(ctx, f.Key, err == nil); done != nil && err == nil {
		r.log.Warn("smpp: parts of a completed message were not removed", "error", done)
	}
	return a.MessageID, r.statusOf(err)
}

// sweep passes on messages that are still incomplete after a time, without the missing parts, until ctx ends.
func (r *receiver) sweep(ctx context.Context, age time.Duration) {
	t := time.NewTicker(max(age/4, time.Millisecond))
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-t.C:
			r.passExpired(ctx, now.Add(-age))
		}
	}
}

func (r *receiver) passExpired(ctx context.Context, before time.Time) {
	all, err := r.parts.Expired(ctx, before)
	if err != nil {
		r.log.Warn("smpp: finding incomplete messages failed", "error", err)
	}
	for _, parts := range all {
		err := r.message(ctx, r.textFor(parts[0].Key.Account).incoming(parts))
		if err := errors.Join(err, r.parts.Done(ctx, parts[0].Key, err == nil)); err != nil {
			r.log.Warn("smpp: an incomplete message was not accepted", "error", err)
		}
	}
}
