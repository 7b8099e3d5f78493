package speech

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"soniq/internal/intelligence/engine/enginetest"
	installed "soniq/internal/intelligence/speechmodel"
	"soniq/internal/intelligence/transcript"
)

// evaluatedRecognizer is a recogniser under evaluation.
type evaluatedRecognizer interface {
	transcript.Recognizer
	Close()
}

// newEvaluatedRecognizer returns the recogniser to evaluate: the one named by SONIQ_EVAL_ENGINE (sphinx, or sherpa:
// followed by the folder of a model), by default the one that builtin selects on this machine.
func newEvaluatedRecognizer(t testing.TB) evaluatedRecognizer {
	switch engine := os.Getenv("SONIQ_EVAL_ENGINE"); {
	case engine == "sphinx":
		return newTestSphinx(t, 2)
	case strings.HasPrefix(engine, SherpaPrefix):
		s := NewSherpa([]string{os.Args[0], "sherpa-worker"}, strings.TrimPrefix(engine, SherpaPrefix), os.Getenv("SONIQ_SHERPA"), 2)
		t.Cleanup(s.Close)
		return s
	}
	dir := installed.Find()
	if dir == "" {
		t.Fatal("the model that builtin stands for is not installed: scripts/hearing does it; SONIQ_EVAL_ENGINE=sphinx measures the other one")
	}
	return newTestEnglish(t, dir, 2)
}

// newTestEnglish starts a recogniser with the model that soniq speech-model install downloaded.
func newTestEnglish(t testing.TB, dir string, workers int) *Sherpa {
	s := NewEnglishSherpa([]string{os.Args[0], "sherpa-worker"}, dir, workers)
	t.Cleanup(s.Close)
	return s
}

var (
	figure = regexp.MustCompile(`\d+`)
	suffix = regexp.MustCompile(`^(st|nd|rd|th)\b`)
)

// spokenForm returns recognised text as spoken words, for comparison with a script: an engine may write digits. Of
// the ways to say a number it takes the one with the fewest word errors against the script.
func spokenForm(want []string, text string) []string {
	text = strings.NewReplacer("%", " percent ", "&", " and ", "$", " ", "@", " at ", ",", "").Replace(strings.ToLower(text))
	usual := func(text string) []string {
		return enginetest.NormalizedWords(figure.ReplaceAllStringFunc(text, func(n string) string {
			return " " + numberReadings(n)[0] + " "
		}))
	}
	for {
		at := figure.FindStringIndex(text)
		if at == nil {
			return enginetest.NormalizedWords(text)
		}
		before, rest := text[:at[0]], suffix.ReplaceAllString(text[at[1]:], " ")
		best, least := "", -1
		for _, way := range numberReadings(text[at[0]:at[1]]) {
			if said := before + " " + way + " " + rest; least < 0 || wordErrors(want, usual(said)) < least {
				best, least = said, wordErrors(want, usual(said))
			}
		}
		text = best
	}
}

var (
	unitWords = strings.Fields("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen")
	tenWords  = strings.Fields("- - twenty thirty forty fifty sixty seventy eighty ninety")
	nth       = map[string]string{"one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth", "twelve": "twelfth"}
)

// numberReadings returns the ways to say a number, the most common first: as a cardinal, digit by digit, in pairs, as
// an ordinal.
func numberReadings(figure string) []string {
	var digits []string
	for _, d := range figure {
		digits = append(digits, unitWords[d-'0'])
	}
	one := strings.Join(digits, " ")
	ways := []string{one, strings.ReplaceAll(one, "zero", "oh")}
	n, err := strconv.Atoi(figure)
	if err != nil || len(figure) > 6 || figure[0] == '0' && len(figure) > 1 {
		return ways
	}
	number := cardinalWords(n)
	ways = append([]string{number}, ways...)
	if len(figure) == 4 || len(figure) == 3 {
		first, second := figure[:len(figure)-2], figure[len(figure)-2:]
		a, _ := strconv.Atoi(first)
		b, _ := strconv.Atoi(second)
		ways = append(ways, cardinalWords(a)+" "+cardinalWords(b), cardinalWords(a)+" hundred", cardinalWords(a)+" oh "+cardinalWords(b))
	}
	words := strings.Fields(number)
	last := words[len(words)-1]
	switch {
	case nth[last] != "":
		last = nth[last]
	case strings.HasSuffix(last, "y"):
		last = strings.TrimSuffix(last, "y") + "ieth"
	default:
		last += "th"
	}
	return append(ways, strings.Join(append(slices.Clone(words[:len(words)-1]), last), " "))
}

// cardinalWords returns a number below a million in words.
func cardinalWords(n int) string {
	switch {
	case n < 20:
		return unitWords[n]
	case n < 100:
		return strings.TrimSuffix(tenWords[n/10]+" "+unitWords[n%10], " zero")
	case n < 1000:
		return strings.TrimSuffix(unitWords[n/100]+" hundred "+cardinalWords(n%100), " zero")
	}
	return strings.TrimSuffix(cardinalWords(n/1000)+" thousand "+cardinalWords(n%1000), " zero")
}

func TestSpokenForm_Numbers(t *testing.T) {
	for _, c := range []struct{ want, text string }{
		{"press two for sales", "Press 2 for sales."},
		{"my number is four four seven nine", "My number is 4479."},
		{"it costs forty two dollars", "It costs 42 dollars."},
		{"in nineteen eighty four at nine thirty", "In 1984, at 9:30."},
		{"on the twenty first we have ninety percent", "On the 21st we have 90%."},
		{"one thousand two hundred calls", "1,200 calls"},
		{"it is oh seven", "It is 07."},
	} {
		if got := strings.Join(spokenForm(enginetest.NormalizedWords(c.want), c.text), " "); got != c.want {
			t.Errorf("%q is %q, not %q", c.text, got, c.want)
		}
	}
	if got := strings.Join(spokenForm(enginetest.NormalizedWords("press three"), "Press 2."), " "); got != "press two" {
		t.Errorf("a wrong figure became %q", got)
	}
}

// recognizedWordsOf returns the words that were recognised on one channel. It reads them from the text if the engine
// returns no word list.
func recognizedWordsOf(want []string, segments []transcript.Segment, channel int) []string {
	var text strings.Builder
	for _, s := range segments {
		if s.Channel == channel && len(s.Words) == 0 {
			text.WriteString(s.Text + " ")
		}
	}
	if text.Len() == 0 {
		return recognizedWords(segments, channel)
	}
	return spokenForm(want, text.String())
}
