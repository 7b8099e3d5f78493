package speech

import (
	"context"
	"strings"

	"soniq/internal/intelligence/transcript"
)

// TurnTranscriber transcribes the speech of a caller to a voice agent, one turn at a time.
type TurnTranscriber struct{ recognizer transcript.Recognizer }

// NewTurnTranscriber returns a TurnTranscriber over a recogniser. Use one whose workers do not transcribe recordings,
// because a caller waits for the result.
func NewTurnTranscriber(l transcript.Recognizer) *TurnTranscriber {
	return &TurnTranscriber{recognizer: l}
}

// Ready returns an error that names the missing dependency if the recogniser cannot run.
func (e *TurnTranscriber) Ready(ctx context.Context) error { return e.recognizer.Ready(ctx) }

// CheckLanguage returns an error if the recogniser does not know a language.
func (e *TurnTranscriber) CheckLanguage(language string) error {
	return transcript.CheckLanguage(e.recognizer, language)
}

// Transcribe returns the words of mono audio at 8 kHz. PocketSphinx first decodes with a grammar of the phrases,
// which it recognises best, and then without one if no phrase matched. Other recognisers take no grammar: if their
// whole text sounds like one of the phrases, that phrase is returned instead.
func (e *TurnTranscriber) Transcribe(ctx context.Context, pcm []int16, phrases []string, language string) (string, error) {
	if language == "" {
		language = "en"
	}
	clip := transcript.Clip{PCM: pcm, Rate: 8000, NarrowBand: true, Language: language, Phrases: phrases}
	if _, builtin := e.recognizer.(*PocketSphinx); !builtin || len(phrases) == 0 {
		return e.transcribeFree(ctx, clip, phrases)
	}
	h, err := e.recognizer.Transcribe(ctx, clip)
	if err != nil {
		return "", err
	}
	if i, ok := containedPhrase(phrases, wordText(h)); ok {
		return phrases[i], nil
	}
	return e.transcribeFree(ctx, clip, nil)
}

// transcribeFree returns the words of a clip, decoded without a grammar. If they contain no phrase but as a whole
// sound like one, it returns that phrase.
func (e *TurnTranscriber) transcribeFree(ctx context.Context, clip transcript.Clip, phrases []string) (string, error) {
	clip.Phrases = nil
	h, err := e.recognizer.Transcribe(ctx, clip)
	if err != nil || !isEnglish(clip.Language) {
		return strings.TrimSpace(h.Text), err
	}
	if _, said := containedPhrase(phrases, h.Text); !said {
		if i, ok := soundsLike(phrases, h.Text); ok {
			return phrases[i], nil
		}
	}
	return strings.TrimSpace(h.Text), nil
}
