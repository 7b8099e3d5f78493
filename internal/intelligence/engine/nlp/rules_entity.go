package nlp

import (
	"strings"

	"soniq/internal/intelligence/engine"
	"soniq/internal/intelligence/transcript"
	"soniq/internal/platform/lazyregexp"
)

// MaxEntities limits the entities of a note.
const MaxEntities = 40

const (
	digitWord    = `(?:zero|oh|one|two|three|four|five|six|seven|eight|nine)`
	numberWord   = `(?:` + digitWord + `|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|half)`
	spokenNumber = numberWord + `(?:[ -](?:and |a )?` + numberWord + `)*`
	ordinal      = `(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|thirteenth|fourteenth|fifteenth|sixteenth|seventeenth|eighteenth|nineteenth|(?:twenty|thirty)[ -](?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth)|twentieth|thirtieth|\d{1,2}(?:st|nd|rd|th))`
	monthName    = `(?:january|february|march|april|may|june|july|august|september|october|november|december)`
	weekday      = `(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)`
	hourWord     = `(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)`
	daytime      = `(?: (?:o'clock|a\.?m\b\.?|p\.?m\b\.?|in the (?:morning|afternoon|evening)|this (?:morning|afternoon|evening)))`
)

// entityRules match entities; the first group is the value if there is one. Text matched by one rule is removed
// before the next.
var entityRules = []struct {
	kind string
	find *lazyregexp.Regexp
}{
	{"email", lazyregexp.New(`(?i)[\w.+-]+@[\w-]+(?:\.[\w-]+)+|\b[\w-]+(?: (?:dot|underscore|dash) [\w-]+)* at [\w-]+(?: dot [\w-]+)+\b`)},
	{"money", lazyregexp.New(`(?i)[$€£] ?\d[\d.,]*\d|[$€£] ?\d|\b\d[\d.,]* ?(?:dollars?|euros?|pounds?|cents?)\b|\b` + spokenNumber +
		` (?:dollars?|euros?|pounds?|cents?)\b`)},
	{"date", lazyregexp.New(`(?i)\b\d{4}-\d\d-\d\d\b|\b(?:(?:on|by|until|before|of) )?(?:the )?` + ordinal + ` (?:of )?` + monthName +
		`(?: (?:nineteen|twenty|two thousand)(?:[ -](?:and )?` + numberWord + `)*| \d{4})?\b|\b` + monthName + ` (?:the )?(?:` + ordinal +
		`|\d{1,2})\b|\b(?:on|by|until|before) (the ` + ordinal + `)(?:[.,;?!]|$| and | at | or | of this)|\b` + weekday + `\b`)},
	{"time", lazyregexp.New(`(?i)\b\d{1,2}:\d\d(?: ?[ap]\.?m\b\.?)?|\b\d{1,2} ?[ap]\.?m\b\.?|\b(?:half past|quarter (?:past|to)) ` +
		hourWord + `\b|\b` + hourWord + `(?: (?:fifteen|thirty|forty|forty five|twenty))?` + daytime +
		`|\b(?:at|before|after|until|by|between) (` + hourWord + `(?: (?:fifteen|thirty|forty|forty five|twenty|and ` + hourWord +
		`))?)(?:[.,?!]|$| or | tomorrow| today)|\b(?:noon|midnight)\b|\b` + hourWord + ` (?:fifteen|thirty|forty|forty five)\b`)},
	{"phone", lazyregexp.New(`\+\d[\d ()-]{6,18}\d|\b\(?\d{3}\)?[ -]\d{3}[ -]\d{4}\b|(?i)\b` + digitWord + `(?:[ -]` + digitWord +
		`){6,14}\b`)},
	{"reference", lazyregexp.New(`\b[A-Z]{1,4}[- ]?\d{3,12}\b|\b\d{3,12}\b|(?i)\b(?:[a-z] ){0,4}` + digitWord + `(?:[ -]` + digitWord +
		`){2,5}\b`)},
}

var (
	// personIntroduction matches how speakers give their own name and those of others.
	personIntroduction = lazyregexp.New(`(?:\b[Mm]y name is|\b[Mm]y name's|\b[Tt]his is|\b[Uu]nder the name(?: of)?|\b[Ii] am|\b[Ss]peaking with|\b(?:Mister|Mr\.?|Mrs\.?|Misses|Ms\.?|Doctor|Dr\.?)) ((?:[A-Z][a-z]+)(?: [A-Z][a-z]+)?)\b`)
	// datePrefix matches words before a date that are not part of it.
	datePrefix = lazyregexp.New(`(?i)^(?:(?:on|by|until|before|of|at) )?(?:the )?`)
	// agentNameSpeaking matches an agent's name before "speaking", or at the end of an introduction.
	agentNameSpeaking = lazyregexp.New(`\b([A-Z][a-z]+) speaking\b|\bI am your [a-z ]+ ([A-Z][a-z]+)\b`)
	// agentIntroduction matches an agent's introduction in recognised words, which have no capital letters.
	agentIntroduction = lazyregexp.New(`\b(?:this is|my name is) ([a-z]{3,})(?: speaking)?(?:[.,]|$| how| may| can| what)|\b([a-z]{3,}) speaking(?:[.,]|$| how| may| can)`)
	// nameQuestion matches questions that are answered with a name alone.
	nameQuestion = lazyregexp.New(`(?i)\b(?:your|what) name\b`)
	nameAnswer   = lazyregexp.New(`^([A-Z][a-z]+(?: [A-Z][a-z]+)?)(?:[.,]|$)`)
	notNames     = engine.WordSet("calling sorry here there glad not just still very happy afraid sure on off in at so the a an my your our their his her manager support reception service sales billing doctor nurse office calling")
)

// entitiesOf returns the entities of a conversation, each value once, in the order of the call.
func entitiesOf(turns []transcript.Turn) []transcript.Entity {
	out := []transcript.Entity{}
	seen := map[string]bool{}
	add := func(kind, value string, turn int) {
		value = strings.Trim(strings.Join(strings.Fields(value), " "), " .,;:?!")
		if key := kind + " " + strings.ToLower(value); value != "" && !seen[key] && len(out) < MaxEntities {
			seen[key] = true
			out = append(out, transcript.Entity{Type: kind, Value: engine.TruncateText(value, 100), Turn: turn})
		}
	}
	for i, t := range turns {
		for _, name := range names(turns, i) {
			add("person", name, t.ID)
		}
		rest := t.Text
		for _, r := range entityRules {
			rest = r.find.ReplaceAllStringFunc(rest, func(found string) string {
				value := found
				if m := r.find.FindStringSubmatch(found); len(m) > 1 && m[1] != "" {
					value = m[1]
				}
				add(r.kind, datePrefix.ReplaceAllString(value, ""), t.ID)
				return " | "
			})
		}
	}
	return out
}

// names returns the persons named in a turn.
func names(turns []transcript.Turn, at int) []string {
	var out []string
	text := turns[at].Text
	for _, find := range []*lazyregexp.Regexp{personIntroduction, agentNameSpeaking} {
		for _, m := range find.FindAllStringSubmatch(text, -1) {
			name := strings.Join(m[1:], "")
			if first, _, _ := strings.Cut(strings.ToLower(name), " "); !notNames[first] {
				out = append(out, name)
			}
		}
	}
	if at > 0 && nameQuestion.MatchString(turns[at-1].Text) && turns[at-1].Speaker != turns[at].Speaker {
		if m := nameAnswer.FindStringSubmatch(text); m != nil && !greetingOnly.MatchString(m[1]) && !commonStart[strings.ToLower(m[1])] {
			out = append(out, m[1])
		}
	}
	if at < 2 && turns[at].Speaker != transcript.Caller && len(out) == 0 {
		if m := agentIntroduction.FindStringSubmatch(strings.ToLower(text)); m != nil && !notNames[m[1]+m[2]] && !commonStart[m[1]+m[2]] {
			name := m[1] + m[2]
			out = append(out, strings.ToUpper(name[:1])+name[1:])
		}
	}
	return out
}
