package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"soniq/internal/intelligence/transcript"
)

// Sphinx is the recogniser that needs Debian packages alone: pocketsphinx in worker processes of this binary, English only. Workers start
// with the first clip, are started again after a crash, and end when nothing has come for five minutes.
type Sphinx struct{ workers }

// NewSphinx prepares a recogniser with a number of workers; 0 stands for half the cores, at least one. command
// starts a worker; nil stands for this binary with the argument "asr-worker".
func NewSphinx(command []string, n int) *Sphinx {
	if command == nil {
		command = []string{self(), "asr-worker"}
	}
	s := &Sphinx{}
	s.prepare(command, n)
	return s
}

// NewBriskSphinx prepares a recogniser with one worker for those who wait for its answer.
func NewBriskSphinx() *Sphinx { return NewSphinx([]string{self(), "asr-worker", Brisk}, 1) }

// Engine names the builtin recogniser.
func (s *Sphinx) Engine() transcript.Engine { return sphinxIdentity }

// needEnglish says what to do for another language than English.
func needEnglish(language string) error {
	if english(language) {
		return nil
	}
	return &transcript.Missing{What: "the builtin recogniser understands English only, not " + language,
		Help: "set SONIQ_TRANSCRIBER to the URL of an OpenAI-compatible server"}
}

// Transcribe recognises one clip. It waits for a free worker; a worker that hangs is ended. The limit is far above
// what a clip takes, as workers yield to everything else on a busy machine.
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

// A silence between two words that ends a sentence, and one that ends it even where the words belong together.
const (
	sentencePause = 150  // ms
	longPause     = 1000 // ms
)

// unfinished are words that no sentence ends with.
var unfinished = wordSet("a an the of to and or my your our their his her its is are was were with for from at in on by than i i'm we're you're mr mrs number dot underscore double triple plus")

// ends tells whether the silence between two words is the end of a sentence. Numbers are said in groups.
func ends(before, after transcript.Word) bool {
	pause := after.StartMS - before.EndMS
	together := unfinished[before.Text] || spoken[before.Text] != "" && spoken[after.Text] != ""
	return pause >= longPause || pause >= sentencePause && !together
}

// heard makes readable text of recognised words: a pause ends a sentence.
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
