package speech

import (
	"context"
	"errors"
	"fmt"

	"soniq/internal/intelligence/engine"
)

// Synthesizer converts text to speech.
type Synthesizer interface {
	// Synthesize returns a text as speech: mono samples and their rate. Voice "" is the engine's default. A text that
	// cannot be spoken is an error. If a dependency is missing the error is a *transcript.MissingDependency.
	Synthesize(ctx context.Context, text, voice, language string) (pcm []int16, rate int, err error)
	// Identity returns engine and model. It is part of the cache key, because another engine speaks the same text
	// differently.
	Identity() string
	// Ready returns a *transcript.MissingDependency if speech cannot be synthesised.
	Ready(ctx context.Context) error
}

// ErrNoSpeakableText is returned for a text without words.
var ErrNoSpeakableText = errors.New("the text has nothing the voice can speak")

// ErrUnknownVoice is returned for a voice the engine does not have.
var ErrUnknownVoice = errors.New("the engine has no such voice")

// NewSynthesizer returns the configured text-to-speech engine, nil for off. If it is an io.Closer the caller must
// close it.
func NewSynthesizer(c engine.Config) (Synthesizer, error) {
	switch c.EngineName() {
	case "builtin":
		return NewFlite(nil), nil
	case "off":
		return nil, nil
	}
	server, err := engine.NewEndpoint(c, "/audio/speech")
	if err != nil {
		return nil, fmt.Errorf("voice: %w", err)
	}
	return &openAISynthesizer{endpoint: server, model: c.ModelOrDefault("tts-1")}, nil
}
