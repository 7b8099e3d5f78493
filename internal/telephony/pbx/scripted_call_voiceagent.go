package pbx

import (
	"context"

	"soniq/internal/protocol/media"
)

// Conversation of a scripted call with an AI voice agent.

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
		c.answered, c.answeredByAI = c.sw.Now(), true
		c.sw.stats.answered.Add(1)
		c.change(ctx, c.answeredEvent(false))
		return nil
	})
}

// StartPlay starts to play a clip instead of the current one, and returns at once.
func (v *ScriptedCall) StartPlay(ctx context.Context, clip *media.Clip) (p *media.Playback, err error) {
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
	wanted := false
	err := v.do(ctx, func(ctx context.Context) error {
		wanted = v.c.recordable(v) && v.c.policy.Announce && !v.c.recordingQuotaReached(ctx)
		return nil
	})
	if err != nil || !wanted {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	clip, err := v.Say(ctx, recordedText, "", "")
	if err != nil {
		clip = recordingTone()
	}
	return v.Play(ctx, clip, PlayOptions{})
}

// recordable reports whether a recording should start with the conversation.
func (c *liveCall) recordable(v *ScriptedCall) bool {
	return c.policy.Record && !c.done && c.recording == nil && len(c.recorded) == 0 && (v.leg == c.a && c.b == nil || v.leg == c.b && c.a == nil)
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
