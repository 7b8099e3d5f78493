package softphone

import (
	"context"
	"time"

	"soniq/internal/protocol/media"
)

// Roles of test callees.

// Talker answers after a delay, speaks, and hangs up.
func Talker(after, speech time.Duration) Role {
	return func(ctx context.Context, p *Callee) {
		p.Ring()
		if p.Wait(ctx, after) && p.Answer(ctx) {
			p.Say(ctx, speech)
		}
	}
}

// Refuser refuses every call with a status.
func Refuser(status int) Role {
	return func(_ context.Context, p *Callee) { p.Reject(status) }
}

// NoAnswer rings until the caller cancels.
func NoAnswer(ctx context.Context, p *Callee) {
	p.Ring()
	<-ctx.Done()
}

// Machine is an answering machine: it plays a greeting and a beep, and records for half a minute.
func Machine(ctx context.Context, p *Callee) {
	p.Ring()
	if !p.Wait(ctx, time.Second) || !p.Answer(ctx) {
		return
	}
	p.Say(ctx, 6*time.Second)
	p.Play(ctx, media.Tone(1000, -15, 500*time.Millisecond, 8000))
	p.Wait(ctx, 30*time.Second)
}

// Presser sends the requested digits, else those given, stays for a while and hangs up.
func Presser(otherwise string) Role {
	return func(ctx context.Context, p *Callee) {
		p.Ring()
		if !p.Wait(ctx, time.Second) || !p.Answer(ctx) || !p.Wait(ctx, 2*time.Second) {
			return
		}
		digits := p.Digits
		if digits == "" {
			digits = otherwise
		}
		p.Press(ctx, digits)
		p.Wait(ctx, 5*time.Second)
	}
}

// Holder speaks, and puts the call on hold for some seconds meanwhile.
func Holder(after, held, speech time.Duration) Role {
	return func(ctx context.Context, p *Callee) {
		p.Ring()
		if !p.Wait(ctx, time.Second) || !p.Answer(ctx) {
			return
		}
		p.Say(ctx, after)
		if ctx.Err() != nil || p.Hold(ctx, true) != nil || !p.Wait(ctx, held) || p.Hold(ctx, false) != nil {
			return
		}
		p.Say(ctx, speech)
	}
}
