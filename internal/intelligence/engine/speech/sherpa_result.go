package speech

import (
	"math"
	"strings"
	"unicode"

	"soniq/internal/intelligence/engine/speech/itn"
	"soniq/internal/intelligence/transcript"
)

// sherpaResult is a result of sherpa-onnx: a text, and its tokens with their start times in seconds. Durations
// (seconds) and logarithms of probabilities exist with some models only.
type sherpaResult struct {
	Text       string    `json:"text"`
	Tokens     []string  `json:"tokens"`
	Timestamps []float64 `json:"timestamps"`
	Durations  []float64 `json:"durations"`
	LogProbs   []float64 `json:"ys_log_probs"`
}

// maxLastTokenMS is the maximum duration assumed for the last token of a word if the model reports start times only.
const maxLastTokenMS = 240

// words returns the words of the text with the times of their tokens, within a clip of a duration in milliseconds. It
// returns nil if the model has no times, or if its tokens do not spell its text.
func (r sherpaResult) words(duration int) []transcript.Word {
	if len(r.Tokens) == 0 || len(r.Timestamps) != len(r.Tokens) {
		return nil
	}
	letters, of := r.letters()
	var words []transcript.Word
	at := 0
	for _, text := range splitWords(r.Text) {
		n := len([]rune(text))
		if at+n > len(letters) || !strings.EqualFold(string(letters[at:at+n]), text) {
			return nil
		}
		words = append(words, r.word(text, of[at], of[at+n-1], duration))
		at += n
	}
	for i := range words[:max(len(words)-1, 0)] {
		words[i].EndMS = max(min(words[i].EndMS, words[i+1].StartMS), words[i].StartMS)
	}
	return words
}

// letters returns the letters of all tokens, and the index of the token of each. Spaces, the sign for a space, and
// the sign of a continued word are not letters.
func (r sherpaResult) letters() (letters []rune, of []int) {
	for i, token := range r.Tokens {
		for _, c := range strings.TrimSuffix(token, "@@") {
			if c != '▁' && !unicode.IsSpace(c) {
				letters, of = append(letters, c), append(of, i)
			}
		}
	}
	return letters, of
}

// word returns the word from a first to a last token.
func (r sherpaResult) word(text string, first, last, duration int) transcript.Word {
	ms := func(seconds float64) int { return min(max(int(math.Round(seconds*1000)), 0), duration) }
	w := transcript.Word{Text: text, StartMS: ms(r.Timestamps[first])}
	switch {
	case len(r.Durations) == len(r.Tokens):
		w.EndMS = ms(r.Timestamps[last] + r.Durations[last])
	case last+1 < len(r.Tokens):
		w.EndMS = min(ms(r.Timestamps[last+1]), ms(r.Timestamps[last])+maxLastTokenMS)
	default:
		w.EndMS = min(ms(r.Timestamps[last])+maxLastTokenMS, duration)
	}
	w.EndMS = max(w.EndMS, w.StartMS)
	if len(r.LogProbs) == len(r.Tokens) {
		w.Confidence = certainty(r.LogProbs[first : last+1])
	}
	return w
}

// certainty returns the geometric mean of probabilities given as logarithms.
func certainty(logs []float64) float64 {
	sum := 0.0
	for _, v := range logs {
		sum += v
	}
	return min(math.Exp(sum/float64(len(logs))), 1)
}

// splitWords splits a text at its spaces; text in scripts without spaces is split into characters.
func splitWords(text string) (words []string) {
	for _, field := range strings.Fields(text) {
		from := 0
		for i, c := range field {
			if unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai) {
				if from < i {
					words = append(words, field[from:i])
				}
				words, from = append(words, string(c)), i+len(string(c))
			}
		}
		if from < len(field) {
			words = append(words, field[from:])
		}
	}
	return words
}

// recognition converts a result. Text with mixed case or punctuation is left unchanged but for addresses. English text without is
// formatted as sentences, like that of PocketSphinx.
func (r sherpaResult) recognition(language string, duration int) transcript.Recognition {
	h := transcript.Recognition{Text: strings.TrimSpace(r.Text), Words: r.words(duration)}
	h.Confidence = meanConfidence(h.Words)
	if h.Text == "" || !isUnformatted(h.Text) {
		return withAddresses(h, language)
	}
	h.Text = strings.ToLower(h.Text)
	for i := range h.Words {
		h.Words[i].Text = strings.ToLower(h.Words[i].Text)
	}
	if !isEnglish(language) {
		return h
	}
	if len(h.Words) == 0 {
		h.Text = itn.Sentence(strings.Fields(h.Text))
		return h
	}
	return recognitionOf(h.Words)
}

// isUnformatted reports whether a text is all lower or all upper case, without punctuation except apostrophes.
func isUnformatted(text string) bool {
	small, capital := false, false
	for _, c := range text {
		switch {
		case unicode.IsUpper(c):
			capital = true
		case unicode.IsLower(c):
			small = true
		case unicode.IsPunct(c) && c != '\'':
			return false
		}
	}
	return small != capital
}
