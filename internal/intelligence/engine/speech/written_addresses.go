package speech

import (
	"strings"

	"soniq/internal/intelligence/engine/speech/itn"
	"soniq/internal/intelligence/transcript"
)

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
		w := transcript.Word{Text: a.Text, StartMS: words[a.From].StartMS, EndMS: words[a.To-1].EndMS, Confidence: meanConfidence(words[a.From:a.To])}
		out, next = append(out, w), a.To
	}
	return append(out, words[next:]...)
}
