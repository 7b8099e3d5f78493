package voiceagent

import (
	"slices"
	"strings"
	"time"
)

// How long a caller must be silent before they are taken to have finished.
const (
	thinksAhead = 120 * time.Millisecond // what was said so far is understood, and answered in private
	finished    = 300 * time.Millisecond // after words that can be the last ones
	unfinished  = 700 * time.Millisecond // after others
	spelling    = 1200 * time.Millisecond
	wordless    = 500 * time.Millisecond // after sounds without words
	longestWait = 2 * time.Second        // whatever was said
)

// leadOn are words nobody ends a sentence with.
var leadOn = words(`a an the and or but so because if when while that which who whose to of for from with without at in on by about into over
	under my your his her its our their this these those i we he she they is are was were am be been would could should will can may might
	do does did have has had not very um uh er erm hmm well like than then as`)

// numerals are words that more of their kind often follow.
var numerals = words(`zero oh one two three four five six seven eight nine ten double`)

// short are answers that are complete by themselves.
var short = words(`yes no yeah yep nope okay ok sure right correct thanks bye goodbye hello operator agent person human stop`)

func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return r != '\'' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && r < 0x80
	})
}

// pause is how long a silence ends what was said: it reads the words.
func pause(text string) time.Duration {
	all := words(text)
	if len(all) == 0 {
		return wordless
	}
	last := all[len(all)-1]
	switch {
	case len(all) == 1 && slices.Contains(short, last):
		return finished
	case slices.Contains(numerals, last) || isDigits(last):
		return spelling
	case slices.Contains(leadOn, last):
		return unfinished
	}
	return finished
}

func isDigits(word string) bool {
	return strings.Trim(word, "0123456789") == ""
}

// murmurs are what people say while they listen.
var murmurs = words(`uh huh mm hmm mhm mmhm yeah yes okay ok right sure yep oh ah i see um er the a and`)

// murmur reports whether somebody only showed that they listen.
func murmur(text string) bool {
	all := words(text)
	if len(all) > 3 {
		return false
	}
	for _, w := range all {
		if !slices.Contains(murmurs, w) {
			return false
		}
	}
	return true
}
