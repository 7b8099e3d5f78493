package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"soniq/internal/intelligence/transcript"
)

// A MenuEar listens to callers who say what they want from a list.
type MenuEar struct {
	listener transcript.Listener
	second   transcript.Listener // nil: nobody else is asked
}

// NewMenuEar makes an ear of an engine. It needs one whose workers are not kept busy by recordings: callers do not wait.
func NewMenuEar(l transcript.Listener) *MenuEar { return &MenuEar{listener: l} }

// Or has another engine, one that listens for nothing but the phrases, asked where the first heard none of them.
func (e *MenuEar) Or(second transcript.Listener) *MenuEar {
	e.second = second
	return e
}

// Ready says what is missing where nothing can be understood.
func (e *MenuEar) Ready(ctx context.Context) error { return e.listener.Ready(ctx) }

// Hear takes 8 kHz audio of a caller, piece by piece, until something was said and a pause follows, and tells which of the phrases it was,
// or sounded most like. What was said when the deadline of the context comes is understood yet. It is false where it was none of them, where nothing was said, and
// where no engine hears.
func (e *MenuEar) Hear(ctx context.Context, phrases []string, pcm <-chan []int16) (index int, ok bool) {
	if w, sleeps := e.listener.(interface{ Wake() }); sleeps {
		w.Wake()
	}
	said := wordsBeforePause(ctx, pcm)
	if len(said) == 0 || errors.Is(ctx.Err(), context.Canceled) {
		return 0, false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), menuPatience)
	defer cancel()
	clip := transcript.Clip{PCM: said, Rate: 8000, NarrowBand: true, Language: "en", Phrases: phrases}
	index, ok, text := heardBy(ctx, e.listener, clip)
	if !ok && e.second != nil && short(text, phrases) {
		index, ok, _ = heardBy(ctx, e.second, clip)
	}
	return index, ok
}

// heardBy tells which phrase an engine hears, or something that sounds like it, and what it heard.
func heardBy(ctx context.Context, l transcript.Listener, clip transcript.Clip) (index int, ok bool, text string) {
	h, err := l.Transcribe(ctx, clip)
	if err != nil {
		return 0, false, ""
	}
	text = saidIn(h)
	if index, ok = which(clip.Phrases, text); !ok {
		index, ok = soundsLike(clip.Phrases, text)
	}
	return index, ok, text
}

// short tells whether what was heard may be a phrase that was misheard: it has hardly more words than the longest.
func short(text string, phrases []string) bool {
	longest := 0
	for _, p := range phrases {
		longest = max(longest, len(plainWords(p)))
	}
	return len(plainWords(text)) <= longest+1
}

// The parts of an utterance.
const (
	menuLead   = 300 * time.Millisecond // kept of what was before it
	menuPause  = 700 * time.Millisecond // ends it
	menuSpeech = 150 * time.Millisecond // shorter noises are none
	menuLength = 6 * time.Second        // at most

	menuPatience = 10 * time.Second // to be understood
)

func at8k(d time.Duration) int { return int(d * 8 / time.Millisecond) }

// wordsBeforePause collects what is said until a pause; nil where nothing is.
func wordsBeforePause(ctx context.Context, pcm <-chan []int16) (said []int16) {
	loud, quiet := 0, 0
	for {
		select {
		case piece, open := <-pcm:
			if !open {
				return enough(said, loud)
			}
			said = append(said, piece...)
			if audible(piece) {
				loud, quiet = loud+len(piece), 0
			} else {
				quiet += len(piece)
			}
			switch {
			case loud < at8k(menuSpeech) && quiet > at8k(menuPause): // a click, or silence
				loud = 0
				said = said[max(len(said)-at8k(menuLead), 0):]
			case loud >= at8k(menuSpeech) && quiet > at8k(menuPause), len(said) > at8k(menuLength):
				return enough(said, loud)
			}
		case <-ctx.Done():
			return enough(said, loud)
		}
	}
}

func enough(said []int16, loud int) []int16 {
	if loud < at8k(menuSpeech) {
		return nil
	}
	return append(said, make([]int16, at8k(menuLead))...)
}

// audible reports whether a piece of audio is more than a quiet line's noise.
func audible(pcm []int16) bool {
	var sum int64
	for _, v := range pcm {
		sum += int64(v) * int64(v)
	}
	return len(pcm) > 0 && sum/int64(len(pcm)) > 300*300
}

// saidIn is what was said, word by word: in the text numbers are written with digits.
func saidIn(h transcript.Heard) string {
	if len(h.Words) == 0 {
		return h.Text
	}
	var all []string
	for _, w := range h.Words {
		all = append(all, w.Text)
	}
	return strings.Join(all, " ")
}

// which is the phrase that a text contains; of several the longest.
func which(phrases []string, text string) (index int, ok bool) {
	words := phraseWords(text)
	best := 0
	for i, p := range phrases {
		w := phraseWords(p)
		if len(w) > best && within(words, w) {
			index, ok, best = i, true, len(w)
		}
	}
	return index, ok
}

// within reports whether words stand somewhere in others, one after another.
func within(all, words []string) bool {
	joined := strings.Join(words, " ")
	for i := range all {
		if i+len(words) <= len(all) && slices.Equal(all[i:i+len(words)], words) {
			return true
		}
		if all[i] == strings.ReplaceAll(joined, " ", "") {
			return true
		}
	}
	return false
}
