package pbx

import (
	"context"
	"time"

	"soniq/internal/protocol/media"
	"soniq/internal/telephony/call"
)

// This file is what a caller who is led hears, and what is heard of them.

// Answer answers the caller with audio of ours, where that is not done yet. A call that is answered so is not one that somebody
// has answered.
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
	if err := l.in.Answer(sdp); err != nil { // the caller gave up at this very moment
		c.sw.Log.Debug("answer came too late", "call", c.id, "err", err)
	}
	return nil
}

// ownBody is what a caller is answered with who talks to us.
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

// Clip loads a sound of the organisation.
func (v *Visit) Clip(ctx context.Context, id string) (*media.Clip, error) {
	return v.c.sw.clip(ctx, v.info.Org, id)
}

// Say makes a clip of a text; language is "" for the engine's own.
func (v *Visit) Say(ctx context.Context, text, voice, language string) (*media.Clip, error) {
	return v.c.sw.spoken(ctx, v.info.Org, text, voice, language)
}

// Music is what callers hear who wait, where nothing else is set.
func (v *Visit) Music() *media.Clip { return media.Music() }

// Ringback is the tone of a telephone that rings, as it is heard in the organisation's country.
func (v *Visit) Ringback() *media.Clip { return v.c.ringback() }

// Playing says how a clip is played.
type Playing struct {
	Keys bool // a key ends it, and stays to be read
}

// Play lets the caller hear a clip, and returns when they have. What is played over and over goes on afterwards.
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

// heard waits until a clip has been heard, or a key ends it.
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

// Loop lets the caller hear a clip over and over, until told otherwise; nil is silence.
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

// Key is the next key the caller presses, or has pressed before it was asked for; false: none in time.
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

// Pressed tells that a key may be there to be read: for who waits for other things too.
func (v *Visit) Pressed() <-chan struct{} { return v.keys.pressed }

// TakeKey is a key that was pressed and not read yet; false: there is none.
func (v *Visit) TakeKey() (rune, bool) { return v.keys.take() }

// Forget forgets keys that were pressed and not read yet.
func (v *Visit) Forget() { v.keys.forget() }

// Mask keeps the keys that follow out of events and timelines.
func (v *Visit) Mask(on bool) {
	_ = v.do(v.ctx, func(context.Context) error { v.masked = on; return nil })
}

// listenAhead is how many pieces of audio wait for who listens; a slow listener loses some.
const listenAhead = 200

// Listen gives what the caller says, in mono at 8 kHz, until stop is called. Only one listens at a time.
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
