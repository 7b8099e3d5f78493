package server

import (
	"context"
	"errors"
	"time"

	"soniq/internal/intelligence/engine"
	"soniq/internal/intelligence/transcript"
	"soniq/internal/platform/op"
	"soniq/internal/protocol/media"
)

// This file joins the sounds of organisations with what plays and speaks them.

// measure is how long a sound is, or why it cannot be played.
func measure(path string) (time.Duration, error) {
	clip, err := media.LoadClip(path)
	if inner := errors.Unwrap(err); inner != nil { // without the path, which is ours alone
		return 0, inner
	}
	if err != nil {
		return 0, err
	}
	return clip.Duration(), nil
}

// speak makes a file of a text; what keeps it from being spoken is told to whoever asked.
func (p *Platform) speak(ctx context.Context, org, text, voice, language string) (string, error) {
	path, err := p.engines.speech.File(ctx, org, text, voice, language)
	if no := unspoken(err); no != nil {
		return "", no
	}
	if errors.Is(err, engine.ErrUnknownVoice) {
		return "", op.Invalid(op.Field("voice", "unknown_voice", err.Error()))
	}
	if errors.Is(err, engine.ErrNoSpeakableText) {
		return "", op.Invalid(op.Field("text", "unspeakable", err.Error()))
	}
	if errors.Is(err, engine.ErrTooLong) || errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return "", op.Invalid(op.Field("text", "too_long", "takes too long to be spoken"))
	}
	return path, err
}

// unspoken is what programs are told where an engine is missing; nil for any other error.
func unspoken(err error) error {
	m, ok := transcript.AsMissingDependency(err)
	if !ok {
		return nil
	}
	e := op.Fail("not_enabled", "the text cannot be spoken: "+m.Problem+"; "+m.Remedy)
	e.Extra = map[string]any{"reason": "no_engine"}
	return e
}

// speaker lets the switch say texts.
type speaker struct{ house *Platform }

// File says a text, once.
func (s speaker) File(ctx context.Context, org, text, voice, language string) (string, error) {
	return s.house.speak(ctx, org, text, voice, language)
}

// Ready says what is missing to say texts.
func (s speaker) Ready(ctx context.Context) error { return unspoken(s.house.engines.speech.Ready(ctx)) }
