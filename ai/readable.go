package ai

import "strings"

// questions are words that open a question.
var questions = wordSet("what where when who why how which can could would will do does did is are was were have has may shall should")

// readable writes recognised words as a sentence: capital letters where they are sure, a full stop or question
// mark at the end, and runs of spoken digits as digits.
func readable(words []string) string {
	if len(words) == 0 {
		return ""
	}
	out := digits(words)
	for i, w := range out {
		if w == "i" || strings.HasPrefix(w, "i'") {
			out[i] = "I" + w[1:]
		}
	}
	out[0] = strings.ToUpper(out[0][:1]) + out[0][1:]
	end := "."
	if questions[strings.ToLower(out[0])] && len(out) > 2 {
		end = "?"
	}
	return strings.Join(out, " ") + end
}

// spoken is how digits are said when a number is read out.
var spoken = map[string]string{"zero": "0", "oh": "0", "one": "1", "two": "2", "three": "3", "four": "4",
	"five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9"}

// digits writes three or more digits said in a row as one number: a reference or telephone number.
func digits(words []string) []string {
	var out []string
	for i := 0; i < len(words); {
		run := ""
		for j := i; j < len(words) && spoken[words[j]] != ""; j++ {
			run += spoken[words[j]]
		}
		if len(run) >= 3 {
			out, i = append(out, run), i+len(run)
			continue
		}
		out, i = append(out, words[i]), i+1
	}
	return out
}

// wordSet makes a set of the words in a text.
func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(text) {
		set[w] = true
	}
	return set
}
