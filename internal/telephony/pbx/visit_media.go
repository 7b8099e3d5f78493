package pbx

import (
	"context"
	"time"

	"soniq/internal/protocol/media"
	"soniq/internal/telephony/call"
)

// Audio and digits of a scripted call: play prompts, read digits, receive audio.

// Answer answers the caller with our own media, unless already answered. The call does not count as answered by a
// party.
func (v *Visit) Answer(ctx context.Context) error {
	return v.do(ctx, func(ctx context.Context) error { return v.c.answerVisitor(ctx, v) })
}

func (c *liveCall) answerVisitor(ctx context.Context, v *Visit) error {
	l := v.leg
	if l.up() {
		return nil
	}
	if l.in == nil || l.over {
		return ErrGone
	}
	sdp, err := c.ownBody(l)
	if err != nil {
		r := refusalOf(err)
		c.reject(r.Status, r.Phrase, call.Outcome{Reason: r.Reason, HangupBy: "system", SIPStatus: r.Status})
		return ErrGone
	}
	l.answered, l.dirty = c.sw.Now(), true
	c.limit(c.maxDuration(), c.timeUp)
	if l.in.Offer != nil {
		l.apply()
	}
	c.watch(l)
	c.step("answered_by_us", l, detail{"codec": l.codec().String()})
	c.wire()
	c.change(ctx)
	if err := l.in.Answer(sdp); err != nil { // the caller canceled at the same moment
		c.sw.Log.Debug("answer came too late", "call", c.id, "err", err)
	}
	return nil
}

// localSDP returns the SDP for a caller who is connected to a script.
func (c *liveCall) ownBody(l *leg) ([]byte, error) {
	if l.in.Offer == nil {
		return l.session.Offer(media.OwnOffer()), nil
	}
	if l.toPeer != nil {
		return l.toPeer, nil
	}
	m, err := c.ownAnswer(l, l.offer)
	if err == nil {
		l.toPeer, err = l.session.Answer(m)
	}
	return l.toPeer, err
}

// Clip loads an audio file of the organisation.
func (v *Visit) Clip(ctx context.Context, id string) (*media.Clip, error) {
	return v.c.sw.clip(ctx, v.info.Org, id)
}

// Say returns a clip with the spoken text. An empty language is the engine's default.
func (v *Visit) Say(ctx context.Context, text, voice, language string) (*media.Clip, error) {
	return v.c.sw.spoken(ctx, v.info.Org, text, voice, language)
}

// Music returns the default music for waiting callers.
func (v *Visit) Music() *media.Clip { return media.Music() }

// Ringback returns the ringing tone of the organisation's country.
func (v *Visit) Ringback() *media.Clip { return v.c.ringback() }

// PlayOptions holds the options of Play.
type Playing struct {
	Keys bool // a key ends it and remains readable
}

// Play plays a clip to the caller and returns at its end. The loop continues afterwards.
func (v *Visit) Play(ctx context.Context, clip *media.Clip, o Playing) error {
	if o.Keys && v.keys.any() {
		return nil
	}
	var playback *media.Playback
	err := v.do(ctx, func(ctx context.Context) error {
		if err := v.c.answerVisitor(ctx, v); err != nil {
			return err
		}
		v.playing = true
		v.c.wire()
		playback = v.leg.stream.Play(clip, media.PlayOptions{})
		v.leg.playback = playback
		return nil
	})
	if err != nil {
		return err
	}
	err = v.heard(ctx, playback, o.Keys)
	playback.Stop()
	return firstError(err, v.do(ctx, func(context.Context) error {
		v.playing = false
		v.c.wire()
		return nil
	}))
}

// awaitPlayed waits until a clip ends, or a key interrupts it.
func (v *Visit) heard(ctx context.Context, p *media.Playback, keys bool) error {
	for {
		var pressed <-chan struct{}
		if keys {
			if pressed = v.keys.pressed; v.keys.any() {
				return nil
			}
		}
		select {
		case <-pressed:
		case <-p.Done():
			return nil
		case <-ctx.Done():
			return ErrGone
		case <-v.ctx.Done():
			return ErrGone
		}
	}
}

// Loop plays a clip in a loop until the next call of Loop; nil stops.
func (v *Visit) Loop(ctx context.Context, clip *media.Clip) error {
	return v.do(ctx, func(ctx context.Context) error {
		v.loop = clip
		if clip != nil {
			if err := v.c.answerVisitor(ctx, v); err != nil {
				return err
			}
		}
		v.c.wire()
		return nil
	})
}

// ReadKey returns the next key, including keys pressed earlier. It returns false if none is pressed within the wait.
func (v *Visit) Key(ctx context.Context, wait time.Duration) (rune, bool, error) {
	if err := v.Answer(ctx); err != nil {
		return 0, false, err
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	for {
		if d, ok := v.keys.take(); ok {
			return d, true, nil
		}
		select {
		case <-v.keys.pressed:
		case <-t.C:
			return 0, false, nil
		case <-ctx.Done():
			return 0, false, ErrGone
		case <-v.ctx.Done():
			return 0, false, ErrGone
		}
	}
}

// KeyPressed returns a channel that receives a value when a key may be readable, for use in a select.
func (v *Visit) Pressed() <-chan struct{} { return v.keys.pressed }

// TakeKey returns a key that was pressed earlier; false if there is none.
func (v *Visit) TakeKey() (rune, bool) { return v.keys.take() }

// DiscardKeys drops the keys that were not read yet.
func (v *Visit) Forget() { v.keys.forget() }

// MaskKeys keeps the following keys out of events and timelines.
func (v *Visit) Mask(on bool) {
	_ = v.do(v.ctx, func(context.Context) error { v.masked = on; return nil })
}

// listenAhead is the number of buffered audio chunks. A slow receiver loses chunks.
const listenAhead = 200

// Listen returns the caller's audio, mono at 8 kHz, until stop is called. Only one receiver is possible at a time.
func (v *Visit) Listen(ctx context.Context) (pcm <-chan []int16, stop func(), err error) {
	if err := v.Answer(ctx); err != nil {
		return nil, nil, err
	}
	heard := make(chan []int16, listenAhead)
	stream := v.leg.stream
	stream.OnAudio(func(piece []int16) {
		select {
		case heard <- append([]int16(nil), piece...):
		default:
		}
	})
	return heard, func() { stream.OnAudio(nil) }, nil
}
