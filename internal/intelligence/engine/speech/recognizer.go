// Package speech implements speech recognisers and speech synthesis. Each is either built in, and runs in worker
// processes, or a client of an OpenAI-compatible server.
package speech

import (
	"fmt"
	"strings"

	"soniq/internal/intelligence/engine"
	"soniq/internal/intelligence/engine/speech/itn"
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

// withAddresses writes the e-mail addresses in an English sentence that an engine has written, in its text and in its words.
func withAddresses(h transcript.Recognition, language string) transcript.Recognition {
	if !isEnglish(language) {
		return h
	}
	tokens := strings.Fields(h.Text)
	found := itn.Addresses(tokens)
	if len(found) == 0 {
		return h
	}
	for i := len(found) - 1; i >= 0; i-- {
		a := found[i]
		tokens = append(tokens[:a.From], append([]string{a.Text}, tokens[a.To:]...)...)
	}
	h.Text, h.Words = strings.Join(tokens, " "), wordsWithAddresses(h.Words)
	return h
}

// wordsWithAddresses joins the words of each address.
func wordsWithAddresses(words []transcript.Word) (out []transcript.Word) {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = w.Text
	}
	next := 0
	for _, a := range itn.Addresses(texts) {
		out = append(out, words[next:a.From]...)
		w := transcript.Word{Text: a.Text, StartMS: words[a.From].StartMS, EndMS: words[a.To-1].EndMS,
			Confidence: meanConfidence(words[a.From:a.To])}
		out, next = append(out, w), a.To
	}
	return append(out, words[next:]...)
}
