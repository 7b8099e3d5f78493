package server

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"soniq/internal/intelligence/engine/speech"
	"soniq/internal/intelligence/transcript"
	"soniq/internal/platform/db"
	"soniq/internal/platform/limit"
	"soniq/internal/platform/op"
	"soniq/internal/protocol/media/clip"
	"soniq/internal/telephony/prompt"
)

// Connects prompts with playback and speech synthesis.

// measure returns the duration of an audio file, or the reason why it cannot be played.
func measure(path string) (time.Duration, error) {
	length, err := clip.Measure(path)
	var file *fs.PathError
	switch {
	case errors.Is(err, clip.ErrTooLong):
		limit.AudioLength.Refuse()
		return 0, prompt.ErrTooLong
	case errors.As(err, &file): // without the path, which is internal
		return 0, file.Err
	}
	return length, err
}

// promptDependencies implements the dependencies of package prompt. It reads the services of the platform at each call, because they
// are built later.
type promptDependencies struct{ p *Platform }

// Measure implements prompt.Engine.
func (d promptDependencies) Measure(path string) (time.Duration, error) { return measure(path) }

// Synthesize implements prompt.Engine.
func (d promptDependencies) Synthesize(ctx context.Context, org, text, voice, language string) (string, error) {
	return d.p.synthesize(ctx, org, text, voice, language)
}

// FindUses implements prompt.UseFinder: it returns the queues and flows that play an audio file.
func (d promptDependencies) FindUses(ctx context.Context, q db.Querier, org, id string) (uses []prompt.Use, err error) {
	queues, err := d.p.queues.PlayedBy(ctx, q, org, id)
	if err != nil {
		return nil, err
	}
	for _, by := range queues {
		uses = append(uses, prompt.Use{Type: "queue", ID: by})
	}
	flows, err := d.p.flows.UsedBy(ctx, q, org, id)
	for _, by := range flows {
		uses = append(uses, prompt.Use{Type: "flow", ID: by})
	}
	return uses, err
}

// synthesize synthesises a text and returns the path of the file. Its errors are for the client.
func (p *Platform) synthesize(ctx context.Context, org, text, voice, language string) (string, error) {
	path, err := p.engines.speech.File(ctx, org, text, voice, language)
	if no := missingEngineError(err); no != nil {
		return "", no
	}
	if errors.Is(err, speech.ErrUnknownVoice) {
		return "", op.Invalid(op.Field("voice", "unknown_voice", err.Error()))
	}
	if errors.Is(err, speech.ErrNoSpeakableText) {
		return "", op.Invalid(op.Field("text", "unspeakable", err.Error()))
	}
	if errors.Is(err, speech.ErrTooLong) || errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return "", op.Invalid(op.Field("text", "too_long", "takes too long to be spoken"))
	}
	return path, err
}

// missingEngineError returns the API error for a missing engine, or nil for other errors.
func missingEngineError(err error) error {
	m, ok := transcript.AsMissingDependency(err)
	if !ok {
		return nil
	}
	e := op.Fail("not_enabled", "the text cannot be spoken: "+m.Problem+"; "+m.Remedy)
	e.Extra = map[string]any{"reason": "no_engine"}
	return e
}

// promptSpeaker synthesises texts for the switch.
type promptSpeaker struct{ platform *Platform }

// File returns the path of a synthesised text.
func (s promptSpeaker) File(ctx context.Context, org, text, voice, language string) (string, error) {
	return s.platform.synthesize(ctx, org, text, voice, language)
}

// Ready returns an error if there is no speech engine.
func (s promptSpeaker) Ready(ctx context.Context) error {
	return missingEngineError(s.platform.engines.speech.Ready(ctx))
}
