// Package itn writes recognised words as text: numbers, dates, times, amounts and addresses in written form (inverse text normalisation),
// and sentences.
package itn

import (
	"fmt"
	"strconv"
	"strings"

	"soniq/internal/intelligence/engine"
)

// numberFormatter formats the beginning of recognised words, and returns the number of words that it used; 0 if they
// are not of its kind. before is the word before, "" at the beginning.
type numberFormatter func(words []string, before string) (text string, used int)

// numberFormatters are tried in this order at each word.
var numberFormatters = []numberFormatter{formatEmail, formatSite, formatCode, formatTime, formatDigits, formatDate, formatMoney, formatYear,
	formatOrdinal, formatCardinal}

// normalize replaces spoken numbers, dates, times, amounts and addresses by their written form (inverse text
// normalisation).
func normalize(words []string) []string {
	var out []string
	before := ""
	for len(words) > 0 {
		text, used := words[0], 1
		for _, w := range numberFormatters {
			if t, n := w(words, before); n > 0 {
				text, used = t, n
				break
			}
		}
		if before = words[used-1]; (before == "and" || before == "or") && len(out) > 0 && strings.Contains(out[len(out)-1], ":") {
			before = "at" // a time of day after another
		}
		out, words = append(out, text), words[used:]
	}
	return out
}

// SpokenDigits maps the spoken form of a digit to the digit.
var SpokenDigits = map[string]string{"zero": "0", "oh": "0", "one": "1", "two": "2", "three": "3", "four": "4",
	"five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9"}

// repetitions maps the words for repeated digits.
var repetitions = map[string]int{"double": 2, "triple": 3}

// digitsOf reads digits spoken one by one.
func digitsOf(words []string) (run string, used int) {
	for used < len(words) {
		n := 1
		if k := repetitions[words[used]]; k > 0 && used+1 < len(words) && SpokenDigits[words[used+1]] != "" {
			n, used = k, used+1
		}
		d := SpokenDigits[words[used]]
		if d == "" {
			break
		}
		run, used = run+strings.Repeat(d, n), used+1
	}
	return run, used
}

// formatDigits formats three or more consecutive digits as one number: a reference or a telephone number, which may
// begin with plus.
func formatDigits(words []string, _ string) (string, int) {
	if words[0] == "plus" && len(words) > 1 {
		if run, n := digitsOf(words[1:]); len(run) >= 7 {
			return "+" + run, n + 1
		}
		return "", 0
	}
	if run, n := digitsOf(words); len(run) >= 3 && (n == len(words) || RoundNumbers[words[n]] == 0) {
		return run, n
	}
	return digitGroups(words)
}

// digitGroups reads a number of four digits or more that is spoken in groups, one of them a single digit: eighty four
// four seven.
func digitGroups(words []string) (run string, used int) {
	single, groups := false, 0
	for used < len(words) {
		if d := SpokenDigits[words[used]]; d != "" {
			run, used, single = run+d, used+1, true
		} else if v, n := below100(words[used:]); n > 0 {
			run, used = run+strconv.Itoa(v), used+n
		} else {
			break
		}
		groups++
	}
	if !single || groups < 3 || len(run) < 4 || unitFollows(words[used:]) {
		return "", 0
	}
	return run, used
}

// letterOf returns the letter of a spoken letter name, in upper case; the dictionary writes some with a full stop.
func letterOf(word string) string {
	if (len(word) == 1 || len(word) == 2 && word[1] == '.') && word[0] >= 'a' && word[0] <= 'z' {
		return strings.ToUpper(word[:1])
	}
	return ""
}

// formatCode joins spelled letters and the digits after them: a reference or an abbreviation.
func formatCode(words []string, _ string) (string, int) {
	letters := ""
	for len(letters) < len(words) && letterOf(words[len(letters)]) != "" {
		letters += letterOf(words[len(letters)])
	}
	if letters == "" || words[0] == "a" || words[0] == "i" {
		return "", 0
	}
	if run, n := digitsOf(words[len(letters):]); len(run) >= 2 {
		return letters + run, len(letters) + n
	}
	return letters, len(letters)
}

// months and ordinals, in order.
var (
	months   = strings.Fields("january february march april may june july august september october november december")
	monthSet = engine.WordSet(strings.Join(months, " "))
	Ones     = strings.Fields("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen")
	Tens     = strings.Fields("- - twenty thirty forty fifty sixty seventy eighty ninety")
	ordinals = strings.Fields(`- first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth
		fifteenth sixteenth seventeenth eighteenth nineteenth twentieth - - - - - - - - - thirtieth`)
	SmallNumbers   = numbered(Ones, 1)
	RoundNumbers   = numbered(Tens, 10)
	OrdinalNumbers = numbered(ordinals, 1)
)

func numbered(words []string, step int) map[string]int {
	m := map[string]int{}
	for i, w := range words {
		if w != "-" {
			m[w] = i * step
		}
	}
	return m
}

// below100 reads a number from 1 to 99.
func below100(words []string) (value, used int) {
	if len(words) == 0 {
		return 0, 0
	}
	if v := SmallNumbers[words[0]]; v > 0 {
		return v, 1
	}
	v := RoundNumbers[words[0]]
	if v == 0 {
		return 0, 0
	}
	if len(words) > 1 && SmallNumbers[words[1]] > 0 && SmallNumbers[words[1]] < 10 {
		return v + SmallNumbers[words[1]], 2
	}
	return v, 1
}

// below1000 reads a number from 1 to 999.
func below1000(words []string) (value, used int) {
	value, used = below100(words)
	if used == 0 && len(words) > 1 && words[0] == "a" && words[1] == "hundred" {
		value, used = 1, 1
	}
	if used == 0 || value > 19 || used >= len(words) || words[used] != "hundred" {
		return value, used
	}
	value, used = value*100, used+1
	return joinedNumber(value, used, words, below100)
}

// joinedNumber adds the number after a hundred or a thousand, with "and" or without.
func joinedNumber(value, used int, words []string, read func([]string) (int, int)) (int, int) {
	skip := 0
	if used < len(words) && words[used] == "and" {
		skip = 1
	}
	if v, n := read(words[used+skip:]); n > 0 && v < value {
		return value + v, used + skip + n
	}
	return value, used
}

// cardinal reads a number from 1 to 999,999,999.
func cardinal(words []string) (value, used int) {
	value, used = below1000(words)
	if used == 0 && len(words) > 1 && words[0] == "a" && (words[1] == "thousand" || words[1] == "million") {
		value, used = 1, 1
	}
	if used == 0 || used >= len(words) {
		return value, used
	}
	switch words[used] {
	case "thousand":
		return joinedNumber(value*1000, used+1, words, below1000)
	case "million":
		return joinedNumber(value*1_000_000, used+1, words, cardinal)
	}
	return value, used
}

// ordinalOf reads an ordinal such as twenty third.
func ordinalOf(words []string) (value, used int) {
	if v := OrdinalNumbers[words[0]]; v > 0 {
		return v, 1
	}
	if v := RoundNumbers[words[0]]; v > 0 && len(words) > 1 && OrdinalNumbers[words[1]] > 0 && OrdinalNumbers[words[1]] < 10 {
		return v + OrdinalNumbers[words[1]], 2
	}
	return 0, 0
}

func ordinalText(n int) string {
	end := map[int]string{1: "st", 2: "nd", 3: "rd"}[n%10]
	if end == "" || n%100 >= 11 && n%100 <= 13 {
		end = "th"
	}
	return strconv.Itoa(n) + end
}

// yearOf reads a year from 1700 to 2099.
func yearOf(words []string) (value, used int) {
	if v, n := cardinal(words); n > 1 && v >= 2000 && v < 2100 && words[0] == "two" {
		return v, n
	}
	century := map[string]int{"seventeen": 1700, "eighteen": 1800, "nineteen": 1900, "twenty": 2000}[words[0]]
	if century == 0 || len(words) < 2 {
		return 0, 0
	}
	if v, n := below100(words[1:]); v >= 10 {
		return century + v, 1 + n
	}
	return 0, 0
}

// formatYear formats a year on its own.
func formatYear(words []string, _ string) (string, int) {
	v, n := yearOf(words)
	if n == 0 || n < len(words) && (words[n] == "hundred" || words[n] == "thousand") {
		return "", 0
	}
	return strconv.Itoa(v), n
}

// datesFollow are words after which "may" and "march" are months.
var datesFollow = engine.WordSet("on of by since until before after in from next last early late")

// formatDate formats a day of a month, and its year.
func formatDate(words []string, before string) (string, int) {
	text, n := dayThenMonth(words)
	if n == 0 {
		text, n = monthThenDay(words, before)
	}
	if n == 0 || n == len(words) {
		return text, n
	}
	if y, k := yearOf(words[n:]); k > 0 {
		return fmt.Sprintf("%s %d", text, y), n + k
	}
	return text, n
}

func dayThenMonth(words []string) (string, int) {
	d, n := ordinalOf(words)
	if n == 0 || d > 31 {
		return "", 0
	}
	of := ""
	if n < len(words) && words[n] == "of" {
		of, n = " of", n+1
	}
	if n == len(words) || !monthSet[words[n]] || of == "" && (words[n] == "may" || words[n] == "march") {
		return "", 0
	}
	return ordinalText(d) + of + " " + Capitalize(words[n]), n + 1
}

func monthThenDay(words []string, before string) (string, int) {
	if !monthSet[words[0]] || len(words) < 2 {
		return "", 0
	}
	n, the := 1, ""
	if words[1] == "the" && len(words) > 2 {
		n, the = 2, " the"
	}
	d, k := ordinalOf(words[n:])
	unsure := (words[0] == "may" || words[0] == "march") && the == "" && d < 3 && !datesFollow[before]
	if k == 0 || d > 31 || unsure {
		return "", 0
	}
	return Capitalize(words[0]) + the + " " + ordinalText(d), n + k
}

// clockFollows are words that precede a time of day.
var clockFollows = engine.WordSet("at by until till before after around from between to")

var dayHalves = map[string]string{"am": "a.m.", "a.m.": "a.m.", "pm": "p.m.", "p.m.": "p.m."}

// formatTime formats a time of day.
func formatTime(words []string, before string) (string, int) {
	hour := SmallNumbers[words[0]]
	if hour < 1 || hour > 12 || len(words) < 2 {
		return "", 0
	}
	minute, n := below100(words[1:])
	if n == 1 && minute < 10 {
		minute, n = 0, 0
	}
	if words[1] == "oh" && len(words) > 2 && SmallNumbers[words[2]] > 0 && SmallNumbers[words[2]] < 10 {
		if minute, n = SmallNumbers[words[2]], 2; len(words) > 3 && SpokenDigits[words[3]] != "" {
			return "", 0 // digits of a longer number
		}
	}
	half := ""
	if 1+n < len(words) {
		half = dayHalves[words[1+n]]
	}
	switch {
	case half != "" && n == 0:
		return fmt.Sprintf("%d %s", hour, half), 2
	case half != "" && minute < 60:
		return fmt.Sprintf("%d:%02d %s", hour, minute, half), 2 + n
	case n > 0 && minute < 60 && clockFollows[before] && !unitFollows(words[1+n:]):
		return fmt.Sprintf("%d:%02d", hour, minute), 1 + n
	}
	return "", 0
}

// units follow amounts: a number before one is not a time of day.
var units = engine.WordSet("dollars dollar euros euro pounds pound pence cents cent percent per hundred thousand million minutes hours days weeks months years people")

func unitFollows(words []string) bool { return len(words) > 0 && units[words[0]] }

// formatMoney formats amounts with cents, and percentages.
func formatMoney(words []string, _ string) (string, int) {
	v, n := cardinal(words)
	if n == 0 || n == len(words) {
		return "", 0
	}
	rest := words[n:]
	switch {
	case rest[0] == "percent":
		return fmt.Sprintf("%s%%", formatInteger(v)), n + 1
	case rest[0] == "per" && len(rest) > 1 && rest[1] == "cent":
		return fmt.Sprintf("%s%%", formatInteger(v)), n + 2
	}
	sign := map[string]string{"dollars": "$", "dollar": "$", "euros": "€", "euro": "€", "pounds": "£", "pound": "£"}[rest[0]]
	if sign == "" {
		return "", 0
	}
	at := 1
	if len(rest) > 1 && rest[1] == "and" {
		at = 2
	}
	if c, k := below100(rest[min(at, len(rest)):]); k > 0 && at+k < len(rest) && engine.WordSet("cents cent pence")[rest[at+k]] {
		return fmt.Sprintf("%s%s.%02d", sign, formatInteger(v), c), n + at + k + 1
	}
	return formatInteger(v) + " " + rest[0], n + 1
}

// formatOrdinal formats ordinals from the tenth on.
func formatOrdinal(words []string, _ string) (string, int) {
	if v, n := ordinalOf(words); v >= 10 {
		return ordinalText(v), n
	}
	return "", 0
}

// formatCardinal formats numbers from ten on.
func formatCardinal(words []string, _ string) (string, int) {
	v, n := cardinal(words)
	if v < 10 {
		return "", 0
	}
	return formatInteger(v), n
}

// formatInteger formats a number with commas, or in millions.
func formatInteger(v int) string {
	switch {
	case v >= 1_000_000 && v%1_000_000 == 0:
		return strconv.Itoa(v/1_000_000) + " million"
	case v >= 1_000_000:
		return fmt.Sprintf("%d,%03d,%03d", v/1_000_000, v/1000%1000, v%1000)
	case v >= 10_000:
		return fmt.Sprintf("%d,%03d", v/1000, v%1000)
	}
	return strconv.Itoa(v)
}
