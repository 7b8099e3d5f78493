package speech

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"soniq/internal/intelligence/transcript"
)

// PhraseRecognizer recognises which phrase of a list a caller says, such as an option of a menu.
type PhraseRecognizer struct {
	recognizer transcript.Recognizer
	fallback   transcript.Recognizer // nil: no second recogniser
}

// NewPhraseRecognizer returns a PhraseRecognizer over a recogniser. Use one whose workers do not transcribe
// recordings, because callers wait for the result.
func NewPhraseRecognizer(l transcript.Recognizer) *PhraseRecognizer {
	return &PhraseRecognizer{recognizer: l}
}

// WithFallback sets a second recogniser, which decodes with a grammar of the phrases. It is used if the first
// recognised no phrase. It returns e.
func (e *PhraseRecognizer) WithFallback(second transcript.Recognizer) *PhraseRecognizer {
	e.fallback = second
	return e
}

// Ready returns an error that names the missing dependency if the recogniser cannot run.
func (e *PhraseRecognizer) Ready(ctx context.Context) error { return e.recognizer.Ready(ctx) }

// CheckLanguage returns an error if the recogniser does not know a language.
func (e *PhraseRecognizer) CheckLanguage(language string) error {
	return transcript.CheckLanguage(e.recognizer, language)
}

// Recognize reads 8 kHz audio of a caller, piece by piece, until the caller has spoken and a pause follows. It returns the index of the
// phrase that was said or that it sounds most like. If the deadline of the context passes, the audio up to then is still recognised. ok
// is false if no phrase matches, nothing was said, the context was cancelled, no recogniser works, or none supports the language.
func (e *PhraseRecognizer) Recognize(ctx context.Context, phrases []string, language string, pcm <-chan []int16) (index int, ok bool) {
	if w, sleeps := e.recognizer.(interface{ Wake() }); sleeps {
		w.Wake()
	}
	said := utteranceBeforePause(ctx, pcm)
	if len(said) == 0 || errors.Is(ctx.Err(), context.Canceled) {
		return 0, false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recognitionTimeout)
	defer cancel()
	clip := transcript.Clip{PCM: said, Rate: 8000, NarrowBand: true, Language: language, Phrases: phrases}
	index, ok, text := recognizePhrase(ctx, e.recognizer, clip)
	if !ok && e.fallback != nil && isShort(text, phrases) {
		index, ok, _ = recognizePhrase(ctx, e.fallback, clip)
	}
	return index, ok
}

// recognizePhrase returns the phrase that one recogniser recognises, or that its text sounds like, and the text.
func recognizePhrase(ctx context.Context, l transcript.Recognizer, clip transcript.Clip) (index int, ok bool, text string) {
	h, err := l.Transcribe(ctx, clip)
	if err != nil {
		return 0, false, ""
	}
	text = wordText(h)
	if index, ok = containedPhrase(clip.Phrases, text); !ok {
		index, ok = soundsLike(clip.Phrases, text)
	}
	return index, ok, text
}

// isShort reports whether a text may be a misrecognised phrase: it has at most one word more than the longest phrase.
func isShort(text string, phrases []string) bool {
	longest := 0
	for _, p := range phrases {
		longest = max(longest, len(plainWords(p)))
	}
	return len(plainWords(text)) <= longest+1
}

// Durations of the parts of an utterance.
const (
	utteranceLead  = 300 * time.Millisecond // audio kept before the utterance
	utterancePause = 700 * time.Millisecond // silence that ends the utterance
	minUtterance   = 150 * time.Millisecond // minimum of loud audio; shorter noises are ignored
	maxUtterance   = 6 * time.Second        // maximum of an utterance

	recognitionTimeout = 10 * time.Second // time limit of recognition
)

func samplesAt8k(d time.Duration) int { return int(d * 8 / time.Millisecond) }

// utteranceBeforePause collects audio until the caller has spoken and pauses. It returns nil if nothing was said.
func utteranceBeforePause(ctx context.Context, pcm <-chan []int16) (said []int16) {
	loud, quiet := 0, 0
	for {
		select {
		case piece, open := <-pcm:
			if !open {
				return finishUtterance(said, loud)
			}
			said = append(said, piece...)
			if audible(piece) {
				loud, quiet = loud+len(piece), 0
			} else {
				quiet += len(piece)
			}
			switch {
			case loud < samplesAt8k(minUtterance) && quiet > samplesAt8k(utterancePause): // a click, or silence
				loud = 0
				said = said[max(len(said)-samplesAt8k(utteranceLead), 0):]
			case loud >= samplesAt8k(minUtterance) && quiet > samplesAt8k(utterancePause), len(said) > samplesAt8k(maxUtterance):
				return finishUtterance(said, loud)
			}
		case <-ctx.Done():
			return finishUtterance(said, loud)
		}
	}
}

func finishUtterance(said []int16, loud int) []int16 {
	if loud < samplesAt8k(minUtterance) {
		return nil
	}
	return append(said, make([]int16, samplesAt8k(utteranceLead))...)
}

// audible reports whether a piece of audio is louder than the noise of a quiet line (RMS above 300).
func audible(pcm []int16) bool {
	var sum int64
	for _, v := range pcm {
		sum += int64(v) * int64(v)
	}
	return len(pcm) > 0 && sum/int64(len(pcm)) > 300*300
}

// wordText returns the recognised words separated by spaces. In Recognition.Text numbers are written with digits
// instead.
func wordText(h transcript.Recognition) string {
	if len(h.Words) == 0 {
		return h.Text
	}
	var all []string
	for _, w := range h.Words {
		all = append(all, w.Text)
	}
	return strings.Join(all, " ")
}

// containedPhrase returns the phrase that a text contains; of several the longest.
func containedPhrase(phrases []string, text string) (index int, ok bool) {
	words := phraseWords(text)
	best := 0
	for i, p := range phrases {
		w := phraseWords(p)
		if len(w) > best && containsWords(words, w) {
			index, ok, best = i, true, len(w)
		}
	}
	return index, ok
}

// containsWords reports whether words occur consecutively in others, or as one compound word.
func containsWords(all, words []string) bool {
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
