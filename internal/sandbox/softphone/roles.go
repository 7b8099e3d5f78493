package softphone

import (
	"context"
	"time"

	"soniq/internal/protocol/media"
)

// Behaviours of test callees.

// Talks answers after a time, speaks and hangs up.
func Talker(after, speech time.Duration) Role {
	return func(ctx context.Context, p *Party) {
		p.Ring()
		if p.Wait(ctx, after) && p.Answer(ctx) {
			p.Say(ctx, speech)
		}
	}
}

// Rejects refuses every call with a SIP status.
func Refuser(status int) Role {
	return func(_ context.Context, p *Party) { p.Reject(status) }
}

// NoAnswer rings until the caller gives up.
func Nobody(ctx context.Context, p *Party) {
	p.Ring()
	<-ctx.Done()
}

// AnsweringMachine plays a greeting and a beep, and waits for half a minute.
func Machine(ctx context.Context, p *Party) {
	p.Ring()
	if !p.Wait(ctx, time.Second) || !p.Answer(ctx) {
		return
	}
	p.Say(ctx, 6*time.Second)
	p.Play(ctx, media.Tone(1000, -15, 500*time.Millisecond, 8000))
	p.Wait(ctx, 30*time.Second)
}

// PressesDigits answers, sends the digits of DigitsHeader or the default ones, waits for a while and hangs up.
func Presser(otherwise string) Role {
	return func(ctx context.Context, p *Party) {
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

// PutsOnHold speaks, puts the call on hold for a time, resumes it and speaks again.
func Holder(after, held, speech time.Duration) Role {
	return func(ctx context.Context, p *Party) {
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
