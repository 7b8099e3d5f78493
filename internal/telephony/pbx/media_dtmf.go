package pbx

import (
	"context"
	"errors"
	"time"

	"soniq/internal/platform/event"
	"soniq/internal/platform/op"
	"soniq/internal/protocol/media"
	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/telephony/call"
)

// dtmfTime limits sending of digits. The longest string is 64 digits with pauses.
const dtmfTime = 2 * time.Minute

// sendDTMF sends digits to a leg: as RFC 4733 events if negotiated, otherwise as tones in the audio.
func (c *liveCall) sendDTMF(_ context.Context, x call.DTMF, done commandReply) {
	l := c.far()
	if x.LegID != "" {
		if l = c.legOf(x.LegID); l == nil {
			done.fail(op.Invalid(op.Field("leg_id", "not_found", "the call has no such leg in progress")))
			return
		}
	}
	if !l.up() {
		done.state(c, "the call is not connected")
		return
	}
	method := x.Method
	if method == "" || method == "auto" {
		method = "rfc4733"
		if !l.stream.TakesEvents() {
			method = "inband"
		}
	}
	stream, dialog := l.stream, l.sip
	c.runAsync(dtmfTime, func(ctx context.Context) func(context.Context) {
		err := sendDigits(ctx, stream, dialog, method, x)
		return func(context.Context) {
			if err != nil {
				done.fail(problemOfDTMF(err, method))
				return
			}
			c.addEntry("dtmf.sent", l, detail{"digits": digitsIn(x.Digits), "method": method})
			done.result(call.Result{Digits: digitsIn(x.Digits), Method: method})
		}
	})
}

func sendDigits(ctx context.Context, stream *media.Stream, dialog *sip.Leg, method string, x call.DTMF) error {
	if method != "info" {
		return stream.SendDTMF(ctx, x.Digits, media.DTMFOptions{Duration: x.Duration, Gap: x.Gap, Inband: method == "inband"})
	}
	for _, d := range x.Digits {
		if d == 'w' {
			if err := wait(ctx, 500*time.Millisecond); err != nil {
				return err
			}
			continue
		}
		kind, body := sipmsg.DTMFInfo(d, x.Duration)
		if err := dialog.Info(ctx, kind, body); err != nil {
			return err
		}
		if err := wait(ctx, x.Gap); err != nil {
			return err
		}
	}
	return nil
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func problemOfDTMF(err error, method string) error {
	if errors.Is(err, media.ErrNoEvents) {
		return op.Invalid(op.Field("method", "not_negotiated", "the other side takes no RFC 4733 events; use auto, info or inband"))
	}
	return op.Fail("carrier_error", "digits not sent by "+method+": "+err.Error())
}

func digitsIn(s string) int {
	n := 0
	for _, d := range s {
		if d != 'w' {
			n++
		}
	}
	return n
}

// minDTMFInterval is the shortest time between two reported digits, after a burst of one second. It is half of the
// shortest digit that phones send, 40 ms tone and 40 ms pause. Each digit is an event and a row, so a sender of
// thousands per second would fill queue and disk.
const minDTMFInterval = 40 * time.Millisecond

// allowDTMF reports whether the rate limit allows to report one more digit.
func (l *leg) allowDTMF(now time.Time) bool { return l.dtmfPacer.Allow(time.Duration(now.UnixNano())) }

// subscribeDTMF reports the digits received on a leg: RFC 4733 events if negotiated, otherwise tones in the audio.
func (c *liveCall) subscribeDTMF(l *leg) {
	method, listen := "inband", l.stream.OnDTMF
	if l.stream.TakesEvents() {
		method, listen = "rfc4733", l.stream.OnEvent
	}
	listen(func(d rune) {
		c := l.owner.Load()
		if !l.allowDTMF(c.sw.now()) {
			return
		}
		c.inbox.Push(message{run: func(ctx context.Context) {
			if l.owner.Load() == c {
				c.onDTMF(ctx, l, d, method)
			}
		}})
	})
}

// onDTMF reports a received digit. It reports nothing while the recording is paused or digits are masked, because the
// digit may belong to a card number.
func (c *liveCall) onDTMF(ctx context.Context, l *leg, d rune, method string) {
	if v := c.scripted; v != nil && l == v.leg {
		v.keys.Press(d, c.sw.now())
		if v.masked {
			return
		}
	}
	if r := c.recording; r != nil && r.paused {
		return
	}
	c.addEntry("dtmf.received", l, detail{"method": method})
	c.change(ctx, event.CallDTMF{CallID: c.id, LegID: l.id, Digit: string(d), Method: method, At: at(c.sw.now())})
}
