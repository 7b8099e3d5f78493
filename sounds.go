package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"soniq/ai"
	"soniq/media"
	"soniq/op"
	"soniq/transcript"
)

// This file joins the sounds of organisations with what plays and speaks them.

// measure is how long a sound is, or why it cannot be played.
func measure(path string) (time.Duration, error) {
	if !strings.HasSuffix(path, ".wav") {
		return 0, errors.New("only WAV files can be played yet")
	}
	w, err := media.ReadWAV(path)
	if err != nil {
		return 0, errors.New("it is no WAV file of 16-bit or G.711 samples")
	}
	if len(w.PCM) == 0 || len(w.PCM[0]) == 0 || w.Rate <= 0 {
		return 0, errors.New("there is no sound in it")
	}
	return time.Duration(len(w.PCM[0])) * time.Second / time.Duration(w.Rate), nil
}

// speak makes a file of a text; what keeps it from being spoken is told to whoever asked.
func (h *house) speak(ctx context.Context, org, text, voice, language string) (string, error) {
	path, err := h.engines.speech.File(ctx, org, text, voice, language)
	if m, ok := transcript.IsMissing(err); ok {
		e := op.Fail("not_enabled", "the text cannot be spoken: "+m.What+"; "+m.Help)
		e.Extra = map[string]any{"reason": "no_engine"}
		return "", e
	}
	if errors.Is(err, ai.ErrUnknownVoice) {
		return "", op.Invalid(op.Field("voice", "unknown_voice", err.Error()))
	}
	return path, err
}
