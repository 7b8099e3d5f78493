package pbx

import (
	"context"

	"soniq/media"
)

// This file is how a caller talks to an AI agent.

// Talk says that the caller talks to an AI agent from now on: it has answered the call, where nobody had. Nothing is played but what
// Utter and Pour play until Hush.
func (v *Visit) Talk(ctx context.Context) error {
	return v.do(ctx, func(ctx context.Context) error {
		c := v.c
		if err := c.answerVisitor(ctx, v); err != nil {
			return err
		}
		v.loop, v.playing, v.place = nil, true, Place{Stage: "ai_agent"}
		c.wire()
		c.step("stage.ai_agent", v.leg, nil)
		if !c.answered.IsZero() {
			c.change(ctx)
			return nil
		}
		c.answered, c.assisted = c.sw.Now(), true
		c.sw.stats.answered.Add(1)
		c.change(ctx, c.answeredEvent(false))
		return nil
	})
}

// Utter begins to let the caller hear a clip, in place of what they heard, and returns at once.
func (v *Visit) Utter(ctx context.Context, clip *media.Clip) (p *media.Playback, err error) {
	err = v.do(ctx, func(context.Context) error {
		p = v.leg.stream.Play(clip, media.PlayOptions{})
		v.leg.playback = p
		return nil
	})
	return p, err
}

// Pour is Utter of sound that still comes.
func (v *Visit) Pour(ctx context.Context, feed *media.Feed) (p *media.Playback, err error) {
	err = v.do(ctx, func(context.Context) error {
		p = v.leg.stream.PlayFeed(feed)
		v.leg.playback = p
		return nil
	})
	return p, err
}

// Hush ends what Talk began.
func (v *Visit) Hush(ctx context.Context) error {
	return v.do(ctx, func(context.Context) error {
		if v.leg.playback != nil {
			v.leg.playback.Stop()
		}
		v.playing = false
		v.c.wire()
		return nil
	})
}
