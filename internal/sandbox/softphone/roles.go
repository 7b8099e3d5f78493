package softphone

import (
	"context"
	"time"

	"soniq/internal/protocol/media/dsp"
)

// Roles of test callees.

// Talks answers after a delay, speaks, and hangs up.
func Talks(after, speech time.Duration) Behavior {
	return func(ctx context.Context, p *Callee) {
		p.Ring()
		if p.Wait(ctx, after) && p.Answer(ctx) {
			p.Say(ctx, speech)
		}
	}
}

// Rejects refuses every call with a status.
func Rejects(status int) Behavior {
	return func(_ context.Context, p *Callee) { p.Reject(status) }
}

// NoAnswer rings until the caller cancels.
func NoAnswer(ctx context.Context, p *Callee) {
	p.Ring()
	<-ctx.Done()
}

// AnsweringMachine is an answering machine: it plays a greeting and a beep, and records for half a minute.
func AnsweringMachine(ctx context.Context, p *Callee) {
	p.Ring()
	if !p.Wait(ctx, time.Second) || !p.Answer(ctx) {
		return
	}
	p.Say(ctx, 6*time.Second)
	p.Play(ctx, dsp.Tone(1000, -15, 500*time.Millisecond, 8000))
	p.Wait(ctx, 30*time.Second)
}

// PressesDigits sends the requested digits, else those given, stays for a while and hangs up.
func PressesDigits(otherwise string) Behavior {
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

// PutsOnHold speaks, and puts the call on hold for some seconds meanwhile.
func PutsOnHold(after, held, speech time.Duration) Behavior {
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
