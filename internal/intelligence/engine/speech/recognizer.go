// Package speech implements speech recognisers and speech synthesis. Each is either built in, and runs in worker
// processes, or a client of an OpenAI-compatible server.
package speech

import (
	"fmt"
	"strings"

	"soniq/internal/intelligence/engine"
	"soniq/internal/intelligence/transcript"
)

// recognizers maps a setting to its constructor, nil for off. Any other setting is the URL of a server.
var recognizers = map[string]func(engine.Config) transcript.Recognizer{
	"builtin":      builtinRecognizer,
	"pocketsphinx": func(engine.Config) transcript.Recognizer { return NewPocketSphinx(nil, 0) },
	"off":          nil,
}

// builtinRecognizer returns the best recogniser that is installed.
func builtinRecognizer(c engine.Config) transcript.Recognizer {
	if c.EnglishModelDir == "" {
		return NewPocketSphinx(nil, 0)
	}
	return NewEnglishSherpa(nil, c.EnglishModelDir, 0)
}

// NewRecognizer returns the configured speech recogniser, nil for off. If it is an io.Closer the caller must close
// it.
func NewRecognizer(c engine.Config) (transcript.Recognizer, error) {
	if build, ok := recognizers[c.EngineName()]; ok {
		if build == nil {
			return nil, nil
		}
		return build(c), nil
	}
	if dir, ok := strings.CutPrefix(c.Engine, SherpaPrefix); ok {
		return NewSherpa(nil, dir, c.SherpaDir, 0), nil
	}
	server, err := engine.NewEndpoint(c, "/audio/transcriptions")
	if err != nil {
		return nil, fmt.Errorf("transcriber: %w", err)
	}
	return &openAIRecognizer{endpoint: server, model: c.ModelOrDefault("whisper-1")}, nil
}
