package itn

import "strings"

// Address is an e-mail address that was written as words in a sentence.
type Address struct {
	From, To int    // the tokens that it replaces, and the one behind them
	Text     string // the address, with the punctuation behind it
}

// maxAddressWords is the number of words of an address at most.
const maxAddressWords = 24

// sentencePunctuation ends a token behind which no address goes on.
const sentencePunctuation = ".,;:?!"

// Addresses finds the e-mail addresses in the tokens of a sentence that an engine has written, in which domains may have their dots:
// "support at example.org", "Bob underscore Jones at example dot net".
func Addresses(tokens []string) (all []Address) {
	for i := 0; i < len(tokens); i++ {
		words, ends := addressWords(tokens[i:])
		address, used := formatEmail(words, "")
		if used == 0 || ends[used-1] == 0 || notMailboxesInSentences[words[0]] {
			continue
		}
		to := i + ends[used-1]
		last := tokens[to-1]
		all = append(all, Address{i, to, address + last[len(strings.TrimRight(last, sentencePunctuation)):]})
		i = to - 1
	}
	return all
}

// addressWords returns the spoken words of tokens up to the end of a clause. For each word that ends a token it returns the number of
// tokens up to it.
func addressWords(tokens []string) (words []string, ends []int) {
	for i, t := range tokens {
		core := strings.TrimRight(t, sentencePunctuation)
		for j, part := range strings.Split(strings.ToLower(core), ".") {
			if j > 0 {
				words, ends = append(words, "dot"), append(ends, 0)
			}
			words, ends = append(words, part), append(ends, 0)
		}
		ends[len(ends)-1] = i + 1
		if core != t || len(words) >= maxAddressWords {
			break
		}
	}
	return words, ends
}

// notMailboxesInSentences are further words before "at" that are no mailbox: "I work at example.org".
var notMailboxesInSentences = wordsOf("am been were being work works worked working met meet meeting arrive arrived stay stayed buy bought order ordered " +
	"register registered sign signed check checked click go went going start started available information details more people team everyone " +
	"someone anyone nobody account login log logged read saw see seen hosted listed published booked book sold reached stop live lives lived " +
	"not only also again now today yesterday tomorrow up out in on by get got left right back one two three")

func wordsOf(text string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(text) {
		m[w] = true
	}
	return m
}
