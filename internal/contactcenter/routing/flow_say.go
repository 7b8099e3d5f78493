package routing

import (
	"context"
	"time"

	"soniq/internal/contactcenter/flow"
	"soniq/internal/protocol/media"
	"soniq/internal/telephony/pbx"
)

// longestVoice bounds how long it takes to have a prompt spoken or read.
const longestVoice = 15 * time.Second

// prompt lets the caller hear a prompt. One that cannot be played is told in the call's timeline, and the flow goes on without it.
func (w *walk) prompt(ctx context.Context, p flow.Prompt, keys bool) error {
	if p.AudioID == "" && p.Text == "" {
		return w.v.Answer(ctx)
	}
	clip, err := w.voice(ctx, p)
	if ctx.Err() != nil {
		return pbx.ErrGone
	}
	if err != nil {
		w.problem = "the prompt was not heard: " + err.Error()
		return w.v.Answer(ctx)
	}
	return w.v.Play(ctx, clip, pbx.Playing{Keys: keys})
}

// voice is a prompt as a sound.
func (w *walk) voice(ctx context.Context, p flow.Prompt) (*media.Clip, error) {
	if err := w.v.Answer(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, longestVoice)
	defer cancel()
	if p.AudioID != "" {
		return w.v.Clip(ctx, p.AudioID)
	}
	return w.v.Say(ctx, w.fill(ctx, p.Text), p.Voice, w.language)
}

// missing says why the call is missed should it end before anybody is found: callers who call while closed call after hours.
func (w *walk) missing(reason string) {
	if w.trip.closed {
		reason = "after_hours"
	}
	w.v.Missed(reason)
}

func (w *walk) play(ctx context.Context, x *flow.Play) (outcome string) {
	w.missing("abandoned_in_menu")
	if err := w.prompt(ctx, x.Prompt, x.Interrupt); err != nil {
		return Gone
	}
	return "done"
}
