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

// Each reply names a keyword of its own language that reverts the action, and fits into two segments.
func TestKeywordReplies_NameValidKeywords(t *testing.T) {
	t.Parallel()
	for _, p := range keywordSets {
		for answer, asks := range map[string]string{p.stopReply: actionStart, p.startReply: actionStop, p.helpReply: actionStop} {
			named := false
			for _, w := range strings.FieldsFunc(answer, func(r rune) bool { return strings.ContainsRune(" ,.:", r) }) {
				m, is := keywords[w]
				named = named || is && m.action == asks && m.language == p.language
			}
			if _, n := Segments(answer); !named || n > 2 {
				t.Errorf("%s: %q has no word for %s, or has %d parts", p.language, answer, asks, n)
			}
		}
	}
}
