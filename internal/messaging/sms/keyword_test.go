package sms

import (
	"strings"
	"testing"
)

func TestParseKeyword_Languages(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"stop": "STOP en", " Stop. ": "STOP en", "STOP!!": "STOP en", "Stop all": "STOP en", "arrêt": "STOP fr", "ARRET.": "STOP fr", "Baja": "STOP es",
		"abmelden": "STOP de", "Stopp": "STOP de", "ferma": "STOP it", "sair": "STOP pt", "Afmelden?": "STOP nl", "rezygnuję": "STOP pl",
		"Start": "START en", "reprendre": "START fr", "começar": "START pt", "wznów": "START pl", "aanmelden": "START nl",
		"help": "HELP en", "Hilfe!": "HELP de", "pomoc": "HELP pl", "please stop": "", "stop it": "", "": "", "ok": "", "Anhalten": "",
	} {
		if m := parseKeyword(text); strings.TrimSpace(m.action+" "+m.language) != want {
			t.Errorf("%q is %q %q, not %q", text, m.action, m.language, want)
		}
	}
}

// https://github.com/p2pu/learning-circles/issues/593
func TestParseKeyword_PunctuationAndSymbols(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`"STOP"`: "STOP", "(stop)": "STOP", "STOP \U0001F6D1": "STOP", "\u200bSTOP\u200b": "STOP", "S\u200bTOP": "STOP", "\ufeffstop": "STOP",
		"\u00abSTOP\u00bb": "STOP", "\u201eStop\u201c": "STOP", "*STOP*": "STOP", "S.T.O.P.": "STOP", "\u202eSTOP\u202c": "STOP",
		"\u200fSTOP": "STOP", "\uff33\uff34\uff2f\uff30": "STOP", "\u24c8\u24c9\u24c4\u24c5": "STOP", "STOP\u3164": "STOP", "ST\u00adOP": "STOP",
		"stop \U0001F64F\U0001F3FD": "STOP", "STOP \u270b\ufe0f": "STOP", "STOP 1\ufe0f\u20e3": "STOP", "STOP\u2122": "STOP", "STOP \u2139\ufe0f": "STOP",
		"STOP\u00a0ALL": "STOP", "stop\nall": "STOP", "stop \r\n  all": "STOP", "STOP\u3000ALL": "STOP", "opt-out": "STOP", "Opt \u2013 out": "STOP",
		"ARRE\u0302T": "STOP", "\u00a1Baja!": "STOP", "\u00bfALTO?": "STOP", "STOP!\n\n-- \nAnn Lee\nSales": "STOP", "Stop\n> Our offer of today": "STOP",
		"> Our offer\n\nstop\n": "STOP", "> STOP": "STOP", "STOP\u2028": "STOP", "S\ufe0fTOP": "STOP", "STOP \ue252": "STOP", "STOP\x00": "STOP",
		"#start": "START", "'Start'": "START", "\u2705 START": "START", "(HELP)": "HELP", "help \u2753": "HELP", "\u200fayuda": "HELP",
		"\u2066Hilfe\u2069!": "HELP", "INFO \u2139\ufe0f": "HELP", "\U0001F44D reprendre": "START",
		"STOP the bus": "", "STOP, the bus": "", "STOP\nthe bus": "", "please: stop": "", "STOP 2": "", "STOP1": "", "don't stop": "", "non-stop": "",
		"stopping": "", "bus stop \U0001F6D1": "", "\U0001F6D1": "", "> STOP the bus": "", "--\nSTOP\nAnn": "", "\u2122": "", "...": "", "STO P": "",
	} {
		if m := parseKeyword(text); m.action != want {
			t.Errorf("%q is %q, not %q", text, m.action, want)
		}
	}
	if m := parseKeyword(strings.Repeat("\u200b", maxKeywordMessage) + "STOP"); m.action != "" {
		t.Error("a message without a bound is searched")
	}
}

// Every keyword of every language counts in quotation marks and in full-width letters, and is no keyword within a sentence.
func TestParseKeyword_EveryKeywordAlike(t *testing.T) {
	t.Parallel()
	for word, want := range keywords {
		wide := strings.Map(func(r rune) rune {
			if r >= 'A' && r <= 'Z' {
				return r - 'A' + '\uff21'
			}
			return r
		}, word)
		for _, text := range []string{word, strings.ToLower(word), "\u201c" + word + "\u201d", wide, "\u200f" + word + " \U0001F64F", word + "\n"} {
			if m := parseKeyword(text); m != want {
				t.Errorf("%q is %q %q, not %q %q", text, m.action, m.language, want.action, want.language)
			}
		}
		if m := parseKeyword(word + " tomorrow"); m.action != "" {
			t.Errorf("%q tomorrow is %q", word, m.action)
		}
	}
}

// Each reply names a keyword of its own language that reverts the action, and fits into two segments.
func TestKeywordReplies_NameValidKeywords(t *testing.T) {
	t.Parallel()
	for _, p := range keywordSets {
		for answer, asks := range map[string]string{p.stopReply: actionStart, p.startReply: actionStop, p.helpReply: actionStop} {
			named := false
			for _, w := range strings.FieldsFunc(answer, func(r rune) bool { return strings.ContainsRune(" ,.:", r) }) {
				m, is := keywords[foldKeyword(w)]
				named = named || is && m.action == asks && m.language == p.language
			}
			if _, n := Segments(answer); !named || n > 2 {
				t.Errorf("%s: %q has no word for %s, or has %d parts", p.language, answer, asks, n)
			}
		}
	}
}
