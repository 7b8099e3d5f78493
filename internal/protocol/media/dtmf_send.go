package media

import (
	"context"
	"errors"
	"time"

	"soniq/internal/protocol/media/dtmf"
	"soniq/internal/protocol/media/rtp"
)

// DTMFOptions configures how digits are sent.
type DTMFOptions struct {
	Duration time.Duration // of each digit; 0 is 100 ms; 40 ms to 6 s, in steps of 20 ms
	Gap      time.Duration // after each; 0 is 60 ms; 40 ms to 6 s
	Inband   bool          // send tones even if the leg takes events
}

// dtmfWait is the pause for a 'w' among the digits.
const dtmfWait = 500 * time.Millisecond

// TakesEvents reports whether the other side negotiated telephone-event.
func (s *Stream) TakesEvents() bool {
	return s.out.hasType(rtp.KindEvent) || s.out.hasType(rtp.KindEventOpus)
}

// SendDTMF sends the digits 0-9 * # A-D, and waits half a second for each w. It sends RFC 4733 events, or tones if
// o.Inband is set. If the other side takes no events and o.Inband is not set, it returns ErrNoEvents. It returns when
// the last digit is sent. Relayed, mixed and played audio is suppressed meanwhile.
func (s *Stream) SendDTMF(ctx context.Context, digits string, o DTMFOptions) error {
	codes, err := parseDigits(digits)
	if err != nil {
		return err
	}
	if !o.Inband && !s.TakesEvents() {
		return ErrNoEvents
	}
	on, off := packetCount(o.Duration, 100*time.Millisecond), packetCount(o.Gap, 60*time.Millisecond)
	for _, c := range codes {
		step := func(p *player, n int) bool { return p.sendEventPacket(c, n, on, off) }
		switch {
		case c == codeWait:
			step = func(p *player, n int) bool { return p.sendPause(n, int(dtmfWait/packetTime)) }
		case o.Inband:
			step = func(p *player, n int) bool { return p.sendTonePacket(c, n, on, off) }
		}
		if err := s.runJob(ctx, step); err != nil {
			return err
		}
	}
	return nil
}

const codeWait = 0xFF

func parseDigits(digits string) ([]byte, error) {
	codes := make([]byte, 0, len(digits))
	for _, d := range digits {
		if d == 'w' || d == 'W' {
			codes = append(codes, codeWait)
			continue
		}
		c, err := dtmf.Code(d)
		if err != nil {
			return nil, err
		}
		codes = append(codes, c)
	}
	return codes, nil
}

// packetCount returns the number of 20 ms packets of a duration, limited to 40 ms to 6 s. usual applies if d is not
// positive.
func packetCount(d, usual time.Duration) int {
	if d <= 0 {
		d = usual
	}
	return int(min(max(d, 2*packetTime), 6*time.Second)+packetTime-1) / int(packetTime)
}

// sendEventPacket sends packet n of a digit as an event. The end packet is sent three times, the last two in the gap
// (RFC 4733 §2.5.1.4).
func (p *player) sendEventPacket(code byte, n, on, off int) bool {
	ms := int(packetTime / time.Millisecond)
	now := p.s.engine.clock()
	if n < on+2 {
		p.s.sendDTMFPacket(code, n, min(n+1, on)*ms, n >= on-1, now)
	}
	p.nextAt = p.nextAt.Add(packetTime)
	more := n < on+off-1
	if !more {
		p.s.advanceTimeline((on+off)*ms, now)
	}
	return more
}

// sendPause sends packet n of a pause as silence.
func (p *player) sendPause(n, of int) bool {
	p.sendAudio(nil, 8000)
	return n < of-1
}

// sendTonePacket sends packet n of a digit as in-band audio.
func (p *player) sendTonePacket(code byte, n, on, off int) bool {
	if n >= on {
		return p.sendPause(n, on+off)
	}
	p.padded = append(p.padded[:0], make([]int16, 160)...)
	dtmf.DualTone(p.padded, code, n*160)
	p.sendAudio(p.padded, 8000)
	return true
}

// ErrNoEvents is returned by SendDTMF if the other side did not negotiate telephone-event.
var ErrNoEvents = errors.New("the other side takes no telephone-event")
