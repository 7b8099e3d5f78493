package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"soniq/internal/intelligence/transcript"
)

// PocketSphinx is the recogniser that needs Debian packages only: pocketsphinx in worker processes of this binary,
// English only. Workers start with the first clip, are restarted after a crash, and end after five minutes without
// requests. It is safe for concurrent use.
type Sphinx struct{ workers }

// NewPocketSphinx returns a recogniser with a number of workers; 0 means half the cores, at least one. command starts
// a worker; nil means this binary with the argument "asr-worker".
func NewSphinx(command []string, n int) *Sphinx {
	if command == nil {
		command = []string{self(), "asr-worker"}
	}
	s := &Sphinx{}
	s.prepare(command, n)
	return s
}

// NewLowLatencyPocketSphinx returns a recogniser with one worker at normal priority, so that a waiting caller gets
// the result soon.
func NewBriskSphinx() *Sphinx { return NewSphinx([]string{self(), "asr-worker", Brisk}, 1) }

// Engine returns the name, model and version of the recogniser.
func (s *Sphinx) Engine() transcript.Engine { return sphinxIdentity }

// requireEnglish returns an error with a remedy for a language other than English.
func needEnglish(language string) error {
	if english(language) {
		return nil
	}
	return &transcript.Missing{What: "the builtin recogniser understands English only, not " + language,
		Help: "set SONIQ_TRANSCRIBER to the URL of an OpenAI-compatible server"}
}

// Transcribe recognises one clip. It waits for a free worker; a worker that hangs is killed. The time limit is far
// above the usual duration, because workers have low priority on a busy machine.
func (s *Sphinx) Transcribe(ctx context.Context, c transcript.Clip) (transcript.Heard, error) {
	if err := needEnglish(c.Language); err != nil {
		return transcript.Heard{}, err
	}
	w, err := s.take(ctx)
	if err != nil {
		return transcript.Heard{}, err
	}
	limit := hangLimit + 20*time.Duration(c.DurationMS())*time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	words, err := w.ask(ctx, c)
	if err != nil {
		s.drop(w)
		return transcript.Heard{}, fmt.Errorf("recognise %d ms of speech: %w", c.DurationMS(), err)
	}
	s.give(w)
	return heard(words), nil
}

// Silence between two words that ends a sentence, and silence that ends it even within a group of words.
const (
	sentencePause = 150  // ms
	longPause     = 1000 // ms
)

// unfinished are words that do not end a sentence.
var unfinished = wordSet("a an the of to and or my your our their his her its is are was were with for from at in on by than i i'm we're you're mr mrs number dot underscore double triple plus")

// isSentenceEnd reports whether the silence between two words ends a sentence. Numbers are spoken in groups with
// pauses.
func ends(before, after transcript.Word) bool {
	pause := after.StartMS - before.EndMS
	together := unfinished[before.Text] || spoken[before.Text] != "" && spoken[after.Text] != ""
	return pause >= longPause || pause >= sentencePause && !together
}

// recognitionOf formats recognised words as sentences: a pause ends a sentence.
func heard(words []transcript.Word) transcript.Heard {
	h := transcript.Heard{Words: words}
	var text, open []string
	for i, w := range words {
		h.Confidence += w.Confidence / float64(len(words))
		if i > 0 && ends(words[i-1], w) {
			text, open = append(text, readable(open)), nil
		}
		open = append(open, w.Text)
	}
	if len(open) > 0 {
		text = append(text, readable(open))
	}
	h.Text = strings.Join(text, " ")
	return h
}
