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
func (v *ScriptedCall) Answer(ctx context.Context) error {
	return v.do(ctx, func(ctx context.Context) error { return v.c.answerScripted(ctx, v) })
}

func (c *liveCall) answerScripted(ctx context.Context, v *ScriptedCall) error {
	l := v.leg
	if l.up() {
		return nil
	}
	if l.in == nil || l.over {
		return ErrGone
	}
	sdp, err := c.localSDP(l)
	if err != nil {
		r := refusalOf(err)
		c.reject(r.Status, r.Phrase, call.Outcome{Reason: r.Reason, HangupBy: "system", SIPStatus: r.Status})
		return ErrGone
	}
	l.answered, l.dirty = c.sw.Now(), true
	c.afterWhileActive(c.maxDuration(), c.maxDurationReached)
	if l.in.Offer != nil {
		l.apply()
	}
	c.watch(l)
	c.addEntry("ivr.answered", l, detail{"codec": l.codec().String()})
	c.wireMedia()
	c.change(ctx)
	if err := l.in.Answer(sdp); err != nil { // the caller canceled at the same moment
		c.sw.Log.Debug("answer came too late", "call", c.id, "err", err)
	}
	return nil
}

// localSDP returns the SDP for a caller who is connected to a script.
func (c *liveCall) localSDP(l *leg) ([]byte, error) {
	if l.in.Offer == nil {
		return l.session.Offer(media.LocalOffer()), nil
	}
	if l.localAnswer != nil {
		return l.localAnswer, nil
	}
	m, err := c.answerFor(l, l.offer)
	if err == nil {
		l.localAnswer, err = l.session.Answer(m)
	}
	return l.localAnswer, err
}

// Clip loads an audio file of the organisation.
func (v *ScriptedCall) Clip(ctx context.Context, id string) (*media.Clip, error) {
	return v.c.sw.clip(ctx, v.info.Org, id)
}

// Say returns a clip with the spoken text. An empty language is the engine's default.
func (v *ScriptedCall) Say(ctx context.Context, text, voice, language string) (*media.Clip, error) {
	return v.c.sw.synthesize(ctx, v.info.Org, text, voice, language)
}

// Music returns the default music for waiting callers.
func (v *ScriptedCall) Music() *media.Clip { return media.HoldMusic() }

// Ringback returns the ringing tone of the organisation's country.
func (v *ScriptedCall) Ringback() *media.Clip { return v.c.ringback() }

// PlayOptions holds the options of Play.
type PlayOptions struct {
	Keys bool // a key ends it and remains readable
}

// Play plays a clip to the caller and returns at its end. The loop continues afterwards.
func (v *ScriptedCall) Play(ctx context.Context, clip *media.Clip, o PlayOptions) error {
	if o.Keys && v.keys.any() {
		return nil
	}
	var playback *media.Playback
	err := v.do(ctx, func(ctx context.Context) error {
		if err := v.c.answerScripted(ctx, v); err != nil {
			return err
		}
		v.playing = true
		v.c.wireMedia()
		playback = v.leg.stream.Play(clip, media.PlayOptions{})
		v.leg.playback = playback
		return nil
	})
	if err != nil {
		return err
	}
	err = v.awaitPlayed(ctx, playback, o.Keys)
	playback.Stop()
	return firstError(err, v.do(ctx, func(context.Context) error {
		v.playing = false
		v.c.wireMedia()
		return nil
	}))
}

// awaitPlayed waits until a clip ends, or a key interrupts it.
func (v *ScriptedCall) awaitPlayed(ctx context.Context, p *media.Playback, keys bool) error {
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
func (v *ScriptedCall) Loop(ctx context.Context, clip *media.Clip) error {
	return v.do(ctx, func(ctx context.Context) error {
		v.loop = clip
		if clip != nil {
			if err := v.c.answerScripted(ctx, v); err != nil {
				return err
			}
		}
		v.c.wireMedia()
		return nil
	})
}

// ReadKey returns the next key, including keys pressed earlier. It returns false if none is pressed within the wait.
func (v *ScriptedCall) ReadKey(ctx context.Context, wait time.Duration) (rune, bool, error) {
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
func (v *ScriptedCall) KeyPressed() <-chan struct{} { return v.keys.pressed }

// TakeKey returns a key that was pressed earlier; false if there is none.
func (v *ScriptedCall) TakeKey() (rune, bool) { return v.keys.take() }

// DiscardKeys drops the keys that were not read yet.
func (v *ScriptedCall) DiscardKeys() { v.keys.discard() }

// MaskKeys keeps the following keys out of events and timelines.
func (v *ScriptedCall) MaskKeys(on bool) {
	_ = v.do(v.ctx, func(context.Context) error { v.masked = on; return nil })
}

// listenAhead is the number of buffered audio chunks. A slow receiver loses chunks.
const listenAhead = 200

// Listen returns the caller's audio, mono at 8 kHz, until stop is called. Only one receiver is possible at a time.
func (v *ScriptedCall) Listen(ctx context.Context) (pcm <-chan []int16, stop func(), err error) {
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
