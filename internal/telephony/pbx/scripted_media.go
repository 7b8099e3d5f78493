package pbx

import (
	"context"
	"time"

	"soniq/internal/protocol/media"
	"soniq/internal/protocol/media/clip"
	"soniq/internal/protocol/media/sdp"
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
	l.answered, l.dirty = c.sw.now(), true
	c.afterWhileActive(c.maxDuration(), c.maxDurationReached)
	if l.in.Offer != nil {
		l.apply()
	}
	c.watch(l)
	c.addEntry("ivr.answered", l, detail{"codec": l.codec().String()})
	c.wireMedia()
	c.change(ctx)
	if err := l.in.Answer(sdp); err != nil { // the caller canceled at the same moment
		c.sw.cfg.Log.Debug("answer came too late", "call", c.id, "err", err)
	}
	return nil
}

// localSDP returns the SDP for a caller who is connected to a script.
func (c *liveCall) localSDP(l *leg) ([]byte, error) {
	if l.in.Offer == nil {
		return l.session.Offer(sdp.LocalOffer()), nil
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
func (v *ScriptedCall) Clip(ctx context.Context, id string) (*clip.Clip, error) {
	return v.c.sw.clip(ctx, v.info.Org, id)
}

// Say returns a clip with the spoken text. An empty language is the engine's default.
func (v *ScriptedCall) Say(ctx context.Context, text, voice, language string) (*clip.Clip, error) {
	return v.c.sw.synthesize(ctx, v.info.Org, text, voice, language)
}

// Music returns the default music for waiting callers.
func (v *ScriptedCall) Music() *clip.Clip { return clip.HoldMusic() }

// Ringback returns the ringing tone of the organisation's country.
func (v *ScriptedCall) Ringback() *clip.Clip { return v.c.ringback() }

// PlayOptions holds the options of Play.
type PlayOptions struct {
	Keys bool // a key ends it and remains readable
}

// Play plays a clip to the caller and returns at its end. The loop continues afterwards.
func (v *ScriptedCall) Play(ctx context.Context, clip *clip.Clip, o PlayOptions) error {
	if o.Keys && v.keys.Any() {
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
	var pressed <-chan struct{}
	if keys {
		pressed = v.keys.Readable()
	}
	select {
	case <-pressed:
		return nil
	case <-p.Done():
		return nil
	case <-ctx.Done():
		return ErrGone
	case <-v.ctx.Done():
		return ErrGone
	}
}

// Loop plays a clip in a loop until the next call of Loop; nil stops.
func (v *ScriptedCall) Loop(ctx context.Context, clip *clip.Clip) error {
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
		if d, ok := v.keys.Take(); ok {
			return d, true, nil
		}
		select {
		case <-v.keys.Readable():
		case <-t.C:
			return 0, false, nil
		case <-ctx.Done():
			return 0, false, ErrGone
		case <-v.ctx.Done():
			return 0, false, ErrGone
		}
	}
}

// KeyPressed returns a channel that is closed while a key is readable, for use in a select. Call it for each select. A
// caller that takes no key is woken again at once.
func (v *ScriptedCall) KeyPressed() <-chan struct{} { return v.keys.Readable() }

// TakeKey returns a key that was pressed earlier; false if there is none.
func (v *ScriptedCall) TakeKey() (rune, bool) { return v.keys.Take() }

// terminatorWait is how long the key that ends an input belongs to it although the input is complete.
const terminatorWait = 3 * time.Second

// EndInput drops the next key if it is the terminator of an input that has just become complete without it.
func (v *ScriptedCall) EndInput(terminator rune) {
	v.keys.DropNext(terminator, v.c.sw.now().Add(terminatorWait))
}

// DiscardKeys drops the keys that were not read yet.
func (v *ScriptedCall) DiscardKeys() { v.keys.Discard() }

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

// Conversation with an AI voice agent.

// StartVoiceAgent connects the caller to an AI agent. It counts as the answer if the call was not answered. Until
// EndVoiceAgent only clips of StartPlay and PlayStream are played.
//
// If the organisation records calls, the conversation is recorded from here. A required notice is played first.
func (v *ScriptedCall) StartVoiceAgent(ctx context.Context) error {
	if err := v.announceAgentRecording(ctx); err != nil {
		return err
	}
	return v.do(ctx, func(ctx context.Context) error {
		c := v.c
		if err := c.answerScripted(ctx, v); err != nil {
			return err
		}
		v.loop, v.playing, v.place = nil, true, Place{Stage: "ai_agent"}
		c.wireMedia()
		c.addEntry("stage.ai_agent", v.leg, nil)
		c.recordAgent(ctx, v)
		if !c.answered.IsZero() {
			c.change(ctx)
			return nil
		}
		c.answered, c.answeredByAI = c.sw.now(), true
		c.sw.stats.answered.Add(1)
		c.change(ctx, c.answeredEvent(false))
		return nil
	})
}

// StartPlay starts to play a clip instead of the current one, and returns at once.
func (v *ScriptedCall) StartPlay(ctx context.Context, clip *clip.Clip) (p *media.Playback, err error) {
	err = v.do(ctx, func(context.Context) error {
		p = v.leg.stream.Play(clip, media.PlayOptions{})
		v.leg.playback = p
		return nil
	})
	return p, err
}

// PlayStream is StartPlay for audio that is still being generated.
func (v *ScriptedCall) PlayStream(ctx context.Context, feed *media.InjectedAudio) (p *media.Playback, err error) {
	err = v.do(ctx, func(context.Context) error {
		p = v.leg.stream.PlayInjected(feed)
		v.leg.playback = p
		return nil
	})
	return p, err
}

// EndVoiceAgent ends the conversation that StartVoiceAgent began.
func (v *ScriptedCall) EndVoiceAgent(ctx context.Context) error {
	return v.do(ctx, func(context.Context) error {
		if v.leg.playback != nil {
			v.leg.playback.Stop()
		}
		v.playing = false
		v.c.suspendRecording(true)
		v.c.wireMedia()
		return nil
	})
}

// announceAgentRecording plays the recording notice if the organisation requires it and nothing is recorded yet.
func (v *ScriptedCall) announceAgentRecording(ctx context.Context) error {
	wanted, policy := false, Policy{}
	err := v.do(ctx, func(ctx context.Context) error {
		policy = v.c.policy
		wanted = v.c.recordable(v) && v.c.policy.Announce && !v.c.recordingQuotaReached(ctx)
		return nil
	})
	if err != nil || !wanted {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	return v.Play(ctx, v.c.sw.recordingNotice(ctx, v.info.Org, policy), PlayOptions{})
}

// recordable reports whether a recording should start with the conversation.
func (c *liveCall) recordable(v *ScriptedCall) bool {
	return c.policy.Record && !c.done && c.recording == nil && len(c.recorded) == 0 && (v.leg == c.a && c.b == nil || v.leg == c.b &&
		c.a == nil)
}

// recordAgent starts or resumes the recording of the conversation with an AI agent.
func (c *liveCall) recordAgent(ctx context.Context, v *ScriptedCall) {
	if !c.recordable(v) {
		c.suspendRecording(false)
		return
	}
	if c.recordingQuotaReached(ctx) {
		return
	}
	consent := c.policy.Consent
	if c.policy.Announce {
		consent = "announced"
	}
	c.record("policy", consent, 2)
	c.change(ctx)
}
