package voiceagent

import (
	"slices"
	"strings"
	"time"
)

// End-of-turn detection: silence after which the caller has finished.
const (
	speculateAfter  = 120 * time.Millisecond // the audio so far is transcribed, and an answer is generated speculatively
	completePause   = 300 * time.Millisecond // after words that can end a sentence
	incompletePause = 700 * time.Millisecond // after words that cannot
	spellingPause   = 1200 * time.Millisecond
	noWordsPause    = 500 * time.Millisecond // after sounds without words
	maxPause        = 2 * time.Second        // maximum, after any words
)

// incompleteWords do not end a sentence.
var incompleteWords = wordsOf(`a an the and or but so because if when while that which who whose to of for from with without at in on by
	about into over under my your his her its our their this these those i we he she they is are was were am be been would could should will
	can may might do does did have has had not very um uh er erm hmm well like than then as`)

// numerals are usually followed by more numerals.
var numerals = wordsOf(`zero oh one two three four five six seven eight nine ten double`)

// completeAnswers are complete as single words.
var completeAnswers = wordsOf(`yes no yeah yep nope okay ok sure right correct thanks bye goodbye hello operator agent person human stop`)

func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return r != '\'' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && r < 0x80
	})
}

// endPause returns the silence that ends a turn, by its last words.
func endPause(text string) time.Duration {
	all := wordsOf(text)
	if len(all) == 0 {
		return noWordsPause
	}
	last := all[len(all)-1]
	switch {
	case len(all) == 1 && slices.Contains(completeAnswers, last):
		return completePause
	case slices.Contains(numerals, last) || isDigits(last):
		return spellingPause
	case slices.Contains(incompleteWords, last):
		return incompletePause
	}
	return completePause
}

func isDigits(word string) bool {
	return strings.Trim(word, "0123456789") == ""
}

// backchannels are words of a listener, such as "uh-huh".
var backchannels = wordsOf(`uh huh mm hmm mhm mmhm yeah yes okay ok right sure yep oh ah i see um er the a and`)

// isBackchannel reports whether a text only signals that the speaker is listening.
func isBackchannel(text string) bool {
	all := wordsOf(text)
	if len(all) > 3 {
		return false
	}
	for _, w := range all {
		if !slices.Contains(backchannels, w) {
			return false
		}
	}
	return true
}
