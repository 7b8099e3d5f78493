package fuzzy

import "strings"

// Limits of the spellings of a word.
const (
	maxSpelled  = 18    // letters of the word
	maxReplaced = 3     // groups of letters that are replaced
	maxListed   = 2_500 // spellings with replaced groups that are taken further
)

// Spellings calls each for spellings that a word may have instead, the likeliest first: with one letter inserted, left out, changed or
// swapped with its neighbour, with groups of letters that sound alike, or with both. Name.Distance decides which of them
// are similar. An index that stores only hashes of words is searched by these spellings. The word must be in lower case. A word with signs
// or digits has no spellings.
func Spellings(word string, each func(string)) {
	plain := strings.Join(words(word), "")
	if len(plain) < 3 || len(plain) > maxSpelled || strings.Trim(plain, asciiLetters) != "" {
		return
	}
	seen := map[string]bool{word: true}
	found := func(s string) {
		if !seen[s] && len(s) >= 3 {
			seen[s] = true
			each(s)
		}
	}
	found(plain)
	oneEdit(plain, asciiLetters+markedLetters, found)
	var first []string
	last, replaced := []string{plain}, map[string]bool{plain: true}
	for range maxReplaced {
		var next []string
		for _, s := range last {
			if len(replaced) > maxListed {
				break
			}
			replaceGroups(s, func(x string) {
				if len(replaced) <= maxListed && !replaced[x] {
					replaced[x], next = true, append(next, x)
					found(x)
				}
			})
		}
		if first == nil {
			first = next
		}
		last = next
	}
	for _, s := range first {
		if strings.Trim(s, asciiLetters) == "" {
			oneEdit(s, asciiLetters, found)
		}
	}
}

// Letters that are inserted and put in the place of others.
const (
	asciiLetters  = "abcdefghijklmnopqrstuvwxyz"
	markedLetters = "äöüßéèáàíóúñçãøåłş"
)

// oneEdit calls each for the spellings with one edit.
func oneEdit(s, letters string, each func(string)) {
	r := []rune(s)
	for i := range len(r) + 1 {
		before, after := string(r[:i]), string(r[i:])
		for _, c := range letters {
			each(before + string(c) + after)
		}
		if i == len(r) {
			break
		}
		rest := string(r[i+1:])
		each(before + rest)
		for _, c := range letters {
			each(before + string(c) + rest)
		}
		if i+1 < len(r) {
			each(before + string(r[i+1]) + string(r[i]) + string(r[i+2:]))
		}
	}
}

// groups are letters that sound alike in English or German names.
var groups = [][]string{
	{"ei", "ai", "ey", "ay", "ie", "y"}, {"ie", "i", "ee"}, {"y", "i", "ie"}, {"ph", "f", "v"}, {"v", "w"}, {"th", "t"},
	{"dt", "t", "tt", "d"}, {"ck", "k", "c", "kk"}, {"ch", "k", "c"}, {"k", "c", "q", "qu"}, {"x", "ks", "cks", "chs"}, {"tz", "z", "s"},
	{"sch", "sh", "s"}, {"ss", "s", "ß"}, {"ue", "u", "ü"}, {"oe", "o", "ö", "ø"}, {"ae", "a", "ä", "e"}, {"ou", "u", "oo"},
	{"ea", "e", "ee"}, {"mc", "mac"}, {"wr", "r"}, {"kn", "n"}, {"gh", ""}, {"j", "y"}, {"b", "p"}, {"g", "k"}, {"en", "on"},
	{"er", "ar"}, {"h", ""}, {"e", ""}, {"son", "sen"}, {"a", "á", "à", "å"}, {"e", "é", "è"}, {"i", "í"}, {"o", "ó"}, {"u", "ú"},
	{"n", "ñ"}, {"c", "ç"}, {"ll", "l"}, {"nn", "n"}, {"mm", "m"}, {"rr", "r"}, {"ff", "f"}, {"pp", "p"}, {"gg", "g"}, {"bb", "b"},
	{"ee", "e"}, {"ei", "y", "i"},
}

// replaceGroups calls each for the spellings in which one group of letters is replaced by one that sounds alike.
func replaceGroups(s string, each func(string)) {
	for _, group := range groups {
		for _, from := range group {
			if from == "" {
				continue
			}
			for at := 0; at+len(from) <= len(s); at++ {
				if s[at:at+len(from)] != from {
					continue
				}
				for _, to := range group {
					if to != from {
						each(s[:at] + to + s[at+len(from):])
					}
				}
			}
		}
	}
}
