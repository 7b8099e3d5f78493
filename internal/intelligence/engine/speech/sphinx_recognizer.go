package speech

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"soniq/internal/intelligence/engine"
	"soniq/internal/intelligence/engine/speech/itn"
	"soniq/internal/intelligence/engine/speech/plausibility"
	"soniq/internal/intelligence/transcript"
)

// PocketSphinx is the recogniser that needs Debian packages only: pocketsphinx in worker processes of this binary,
// English only. Workers start with the first clip, are restarted after a crash, and end after five minutes without
// requests. It is safe for concurrent use.
type PocketSphinx struct{ workerPool }

// NewPocketSphinx returns a recogniser with a number of workers; 0 means half the cores, at least one. command starts
// a worker; nil means this binary with the argument "asr-worker".
func NewPocketSphinx(command []string, n int) *PocketSphinx {
	if command == nil {
		command = []string{executablePath(), "asr-worker"}
	}
	s := &PocketSphinx{}
	s.prepare(command, n)
	return s
}

// NewLowLatencyPocketSphinx returns a recogniser with one worker at normal priority, so that a waiting caller gets
// the result soon.
func NewLowLatencyPocketSphinx() *PocketSphinx {
	return NewPocketSphinx([]string{executablePath(), "asr-worker", LowLatency}, 1)
}

// Engine returns the name, model and version of the recogniser.
func (s *PocketSphinx) Engine() transcript.Engine { return sphinxIdentity }

// requireLanguage returns an *transcript.UnsupportedLanguage with a remedy if a language is not among those of an
// engine. No known languages mean that any language may work.
func requireLanguage(engine, remedy string, known []string, language string) error {
	if len(known) == 0 || slices.Contains(known, transcript.BaseLanguage(language)) {
		return nil
	}
	names := strings.Join(known, ", ")
	if names == "en" {
		names = "English"
	}
	problem := fmt.Sprintf("%s knows %s only, not %s", engine, names, language)
	return &transcript.UnsupportedLanguage{Language: language,
		MissingDependency: transcript.MissingDependency{Problem: problem, Remedy: remedy}}
}

// recognizerRemedy is the action for the operator if a recogniser does not know a language.
const recognizerRemedy = "set SONIQ_TRANSCRIBER to the URL of an OpenAI-compatible server, or to sherpa: with the folder of a model for it"

var englishOnly = []string{"en"}

// CheckLanguage returns an error for a language other than English.
func (s *PocketSphinx) CheckLanguage(language string) error {
	return requireLanguage("the builtin recogniser", recognizerRemedy, englishOnly, language)
}

// Transcribe recognises one clip. It waits for a free worker; a worker that hangs is killed. The time limit is far
// above the usual duration, because workers have low priority on a busy machine.
func (s *PocketSphinx) Transcribe(ctx context.Context, c transcript.Clip) (transcript.Recognition, error) {
	if err := s.CheckLanguage(c.Language); err != nil {
		return transcript.Recognition{}, err
	}
	retries := sphinxRetries
	if len(c.Phrases) > 0 {
		retries = 0 // the grammar may have no match
	}
	return plausibility.Recognize(c, retries, func(c transcript.Clip) (transcript.Recognition, error) { return s.decode(ctx, c) })
}

// sphinxRetries is how often a clip is recognised again: the recogniser is slow, and its grammar of words seldom runs into loops.
const sphinxRetries = 1

// decode recognises one clip as it is.
func (s *PocketSphinx) decode(ctx context.Context, c transcript.Clip) (transcript.Recognition, error) {
	w, err := s.acquire(ctx)
	if err != nil {
		return transcript.Recognition{}, err
	}
	limit := hangTimeout + 20*time.Duration(c.DurationMS())*time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	words, err := w.transcribeSphinx(ctx, c)
	if err != nil {
		s.discard(w)
		return transcript.Recognition{}, fmt.Errorf("recognise %d ms of speech: %w", c.DurationMS(), err)
	}
	s.release(w)
	return recognitionOf(words), nil
}

// Silence between two words that ends a sentence, and silence that ends it even within a group of words.
const (
	sentencePause = 150  // ms
	longPause     = 1000 // ms
)

// unfinished are words that do not end a sentence.
var unfinished = engine.WordSet("a an the of to and or my your our their his her its is are was were with for from at in on by than i i'm we're you're mr mrs number dot underscore double triple plus")

// isSentenceEnd reports whether the silence between two words ends a sentence. Numbers are spoken in groups with
// pauses.
func isSentenceEnd(before, after transcript.Word) bool {
	pause := after.StartMS - before.EndMS
	together := unfinished[before.Text] || itn.SpokenDigits[before.Text] != "" && itn.SpokenDigits[after.Text] != ""
	return pause >= longPause || pause >= sentencePause && !together
}

// recognitionOf formats recognised words as sentences: a pause ends a sentence.
func recognitionOf(words []transcript.Word) transcript.Recognition {
	h := transcript.Recognition{Words: words}
	var text, open []string
	for i, w := range words {
		h.Confidence += w.Confidence / float64(len(words))
		if i > 0 && isSentenceEnd(words[i-1], w) {
			text, open = append(text, itn.Sentence(open)), nil
		}
		open = append(open, w.Text)
	}
	if len(open) > 0 {
		text = append(text, itn.Sentence(open))
	}
	h.Text = strings.Join(text, " ")
	return h
}
