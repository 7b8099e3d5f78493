package clause

import (
	"fmt"
	"strings"
	"testing"
)

// stateOf returns the state of the word marked by a star in a turn, as the names of its fields.
func stateOf(t *testing.T, marked string) string {
	t.Helper()
	at := strings.IndexByte(marked, '*')
	text := strings.Replace(marked, "*", "", 1)
	for _, c := range Read(text) {
		from := strings.Index(text, c.Text)
		if from < 0 || at < from || at >= from+len(c.Text) {
			continue
		}
		s := c.At(at - from)
		var all []string
		for _, f := range []struct {
			name string
			set  bool
		}{{"negated", s.Negated}, {"condition", s.Condition}, {"conditional", s.Conditional && !s.Condition}, {"asked", s.Asked}, {"reported", s.Reported},
			{"corrected", s.Corrected}, {"uncertain", s.Uncertain}, {"past", s.Past}} {
			if f.set {
				all = append(all, f.name)
			}
		}
		return strings.Join(all, " ")
	}
	return "nowhere"
}

// https://github.com/gopaljilab/Clinical-Insight-Engine/issues/1662
// https://github.com/thinkroth/Sentimental/issues/8
// https://github.com/JKHeadley/instar/issues/733
func TestAt(t *testing.T) {
	t.Parallel()
	for marked, want := range map[string]string{
		"No hot *water since yesterday.": "negated", "No, the hot *water is off.": "", "no the *water is off": "", "No hot water and the *kitchen is on fire.": "",
		"There is no *smell of gas.": "negated", "There is no fire or *smoke.": "negated", "I don't smell *gas, smoke or anything.": "negated",
		"It is not a leak but a *fire.": "", "It is not a *leak but a fire.": "negated", "I do not think there is a *leak.": "negated",
		"I do not think that there is a *leak.": "negated", "Nobody will *call today.": "negated", "I am not *happy.": "negated", "We never had *trouble.": "negated",
		"I am not only *angry but tired.": "", "There is no doubt that it *leaks.": "", "Not just the *door is broken.": "", "It is not working because the pipe is *broken.": "",
		"I have no water and there is *smoke.": "", "The house is free of *smoke.": "negated", "Instead of a *refund I got a bill.": "negated",
		"A *fire is not what we have.": "negated", "I cannot *breathe.": "negated", "He is no longer *ill.": "negated", "without a *problem": "negated",
		"If I smell *gas, what should I do?": "condition", "If it fails, I will *call you.": "conditional", "I will *call you if it fails.": "conditional",
		"I will *call you unless he comes.": "conditional", "I will *call you tomorrow, and if you have questions call us.": "", "if it fails I will *call": "conditional",
		"I will *send it, but if it breaks I will not pay.": "", "Call me *today if possible.": "", "I will *come even if it rains.": "",
		"Should you need help, *call us.": "conditional", "Otherwise I will *cancel.": "condition", "I will check if it is in *stock.": "asked",
		"In case of rain we will *call you.": "condition", "I will *call you in case it fails.": "condition", "I'll *pay provided it works.": "condition",
		"Is there a *leak?": "asked", "is there a *leak": "asked", "There is a *leak, what should I do?": "", "You will *call me?": "asked", "Why is it *slow?": "asked",
		"I asked whether it *leaks.": "asked", "Can you *send it?": "", "When it is fixed I will *call you.": "", "The phone, which is new, is *broken.": "",
		"He said he will *call me.": "reported", "You told me you would *pay.": "reported uncertain", "I was told it was *paid.": "reported", "I told you it is *broken.": "",
		"He said so, but I will *pay.": "", "Please tell him I will *pay.": "", "I might *call you.": "uncertain", "Maybe I will *call you.": "uncertain", "I would *pay it.": "uncertain",
		"I will *call you, no, I will write.": "corrected", "I will call you, no, I will *write.": "", "I will *call you at three, no, four.": "",
		"I will *call you. No wait, I will write.": "corrected", "I'll *come on Monday, I mean Tuesday.": "", "I will *send a red one, scratch that, I will send none.": "corrected",
		"We had a *fire last year.": "past", "The *smell was fixed.": "past", "Two years ago there was a *leak.": "past",
	} {
		if got := stateOf(t, marked); got != want {
			t.Errorf("%q is %q, want %q", marked, got, want)
		}
	}
}

func TestStatement(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"My internet connection is very slow every evening.": true, "I lost my card yesterday.": true, "Hi, I ordered two lamps.": true, "The screen is black.": true,
		"Hot water since yesterday.": false, "No hot water since yesterday.": false, "I did not lose it.": false, "Is it slow?": false, "I would pay.": false,
		"I lost it if he says so.": false, "He said I lost it.": false, "I need two, no, three lamps.": false, "": false, "?": false,
	} {
		c := Read(text)
		if got := len(c) == 1 && c[0].Statement(); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestRead_KeepsWords(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"I'll come at three. No, four. Bye.", "Call me at 3 p.m. today. Thanks!", "I will pay, no, I will not.", "no", "…", "’"} {
		var all []string
		for _, c := range Read(text) {
			all = append(all, c.Text)
		}
		if got := strings.Join(all, " "); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("No, if I smell gas, I'd call, no wait, I mean Tuesday. At four?")
	f.Fuzz(func(_ *testing.T, text string) {
		for _, c := range Read(text) {
			for i := range c.Text {
				_ = fmt.Sprint(c.At(i), c.Span(i), c.DeniesObject(i))
			}
			_ = c.Statement()
		}
	})
}
