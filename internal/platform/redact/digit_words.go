package redact

import (
	"maps"
	"strconv"
	"strings"
)

// Words for digits. English and German are always read, the others in calls in their language.

// digitLists has the words for 0 to 9.
var digitLists = map[string]string{
	"en": "zero one two three four five six seven eight nine",
	"de": "null eins zwei drei vier fünf sechs sieben acht neun",
	"fr": "zéro un deux trois quatre cinq six sept huit neuf",
	"es": "cero uno dos tres cuatro cinco seis siete ocho nueve",
	"it": "zero uno due tre quattro cinque sei sette otto nove",
	"nl": "nul een twee drie vier vijf zes zeven acht negen",
	"pt": "zero um dois três quatro cinco seis sete oito nove",
	"pl": "zero jeden dwa trzy cztery pięć sześć siedem osiem dziewięć",
}

// otherWords are further words for digits, and numbers from 10 on.
var otherWords = map[string]string{"oh": "0", "o": "0", "nought": "0", "naught": "0", "niner": "9", "zwo": "2", "fuenf": "5",
	"ten": "10", "eleven": "11", "twelve": "12", "thirteen": "13", "fourteen": "14", "fifteen": "15", "sixteen": "16", "seventeen": "17",
	"eighteen": "18", "nineteen": "19", "zehn": "10", "elf": "11", "zwölf": "12", "dreizehn": "13", "vierzehn": "14", "fünfzehn": "15",
	"sechzehn": "16", "siebzehn": "17", "achtzehn": "18", "neunzehn": "19"}

// tens are the words for 20 to 90; a digit behind an English one is added.
var tens = map[string]string{"twenty": "20", "thirty": "30", "forty": "40", "fifty": "50", "sixty": "60", "seventy": "70", "eighty": "80",
	"ninety": "90", "zwanzig": "20", "dreißig": "30", "dreissig": "30", "vierzig": "40", "fünfzig": "50", "sechzig": "60", "siebzig": "70",
	"achtzig": "80", "neunzig": "90"}

var digitWords = digitWordsOf("en", "de")

func digitWordsOf(languages ...string) map[string]string {
	m := maps.Clone(otherWords)
	maps.Copy(m, tens)
	for _, l := range languages {
		i := 0
		for w := range strings.FieldsSeq(digitLists[l]) {
			m[w] = strconv.Itoa(i)
			i++
		}
	}
	return m
}

// wordsFor returns the words for digits in a call of a language.
func wordsFor(language string) map[string]string {
	base, _, _ := strings.Cut(strings.ToLower(language), "-")
	if digitLists[base] == "" || base == "en" || base == "de" {
		return digitWords
	}
	return digitWordsOf("en", "de", base)
}

var germanUnits = map[string]string{"ein": "1", "zwei": "2", "drei": "3", "vier": "4", "fünf": "5", "sechs": "6", "sieben": "7",
	"acht": "8", "neun": "9"}

// germanNumber reads a compound such as einundvierzig or hundertelf; "" if it is none.
func germanNumber(word string) string {
	if before, after, ok := strings.Cut(word, "hundert"); ok {
		hundreds, rest := "1", "00"
		if before != "" {
			hundreds = germanUnits[before]
		}
		if after != "" {
			rest = germanBelow100(after)
		}
		if hundreds == "" || rest == "" {
			return ""
		}
		return hundreds + rest
	}
	if strings.Contains(word, "und") {
		return germanBelow100(word)
	}
	return ""
}

// germanBelow100 reads a number below 100 as two digits.
func germanBelow100(word string) string {
	if n := digitWords[word]; n != "" {
		return strings.Repeat("0", 2-len(n)) + n
	}
	unit, ten, ok := strings.Cut(word, "und")
	if !ok || germanUnits[unit] == "" || tens[ten] == "" {
		return ""
	}
	return tens[ten][:1] + germanUnits[unit]
}
