package engine

import (
	"context"
	"errors"
	"fmt"
)

// A Voice speaks.
type Voice interface {
	// Say turns a text into speech: mono samples and their rate. Voice "" is the engine's usual one. A text it cannot
	// speak is an error; what is missing to speak at all is a *transcript.Missing.
	Say(ctx context.Context, text, voice, language string) (pcm []int16, rate int, err error)
	// Identity names engine and model: the same text is not spoken the same way by another.
	Identity() string
	// Ready says what is missing, as a *transcript.Missing, where it cannot speak.
	Ready(ctx context.Context) error
}

// ErrNothing is returned for a text without words.
var ErrNothing = errors.New("the text has nothing the voice can speak")

// ErrUnknownVoice is returned for a voice the engine does not have.
var ErrUnknownVoice = errors.New("the engine has no such voice")

// NewVoice gives the text to speech engine chosen, nil for off. One that is an io.Closer is to be closed.
func NewVoice(c Choice) (Voice, error) {
	switch c.name() {
	case "builtin":
		return NewFlite(nil), nil
	case "off":
		return nil, nil
	}
	server, err := newServer(c, "/audio/speech")
	if err != nil {
		return nil, fmt.Errorf("voice: %w", err)
	}
	return &remoteVoice{server: server, model: c.model("tts-1")}, nil
}
