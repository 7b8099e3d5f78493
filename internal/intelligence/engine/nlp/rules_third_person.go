package nlp

import (
	"strings"

	"soniq/internal/intelligence/engine"
	"soniq/internal/intelligence/transcript"
	"soniq/internal/platform/lazyregexp"
)

// phraseReplacement replaces whole words.
type phraseReplacement struct {
	find *lazyregexp.Regexp
	with string
}

func phraseReplacements(pairs ...string) []phraseReplacement {
	var out []phraseReplacement
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, phraseReplacement{lazyregexp.New(`(?i)\b` + pairs[i] + `\b`), pairs[i+1]})
	}
	return out
}

// firstPerson converts statements of speakers about themselves to the third person. "They" takes the verb forms that
// "I" takes, with two exceptions.
var firstPerson = phraseReplacements(
	`i am`, "they are", `i'm`, "they are", `i was`, "they were", `i've`, "they have", `i'll`, "they will", `i'd`, "they would",
	`we're`, "they are", `we've`, "they have", `we'll`, "they will", `am i`, "are they", `was i`, "were they",
	`myself`, "themselves", `ourselves`, "themselves", `mine`, "theirs", `ours`, "theirs",
	`my`, "their", `our`, "their", `me`, "them", `us`, "them", `i`, "they", `we`, "they")

// secondPerson converts statements of an agent to the caller.
var secondPerson = phraseReplacements(
	`you are`, "the caller is", `you're`, "the caller is", `you were`, "the caller was", `you have`, "the caller has",
	`you've`, "the caller has", `you'll`, "the caller will", `you do`, "the caller does", `are you`, "is the caller", `you need`,
	"the caller needs", `you get`, "the caller gets",
	`yourself`, "themselves", `yours`, "the caller's", `your`, "the caller's", `you`, "the caller")

// toCompany converts statements of a caller to the agent.
var toCompany = phraseReplacements(
	`you are`, "the company is", `you're`, "the company is", `you were`, "the company was", `you have`, "the company has",
	`you've`, "the company has", `your`, "the company's", `you`, "the company")

var (
	// youVerb matches a you that has a verb of its own whose form secondPerson and toCompany do not know.
	youVerb = lazyregexp.New(`(?i)\byou ([a-z']+)`)
	// afterYou may follow a you that is no subject.
	afterYou = engine.WordSet(`a an the to by for with on in at when as and or from your my our this that these those today tomorrow tonight
		back again now directly over through right up off about into within before after until next soon later here there one two three four
		five six seven eight nine ten some any his her their its so because then via at first personally also`)
	callerForms  = engine.WordSet("are were have do need get")
	companyForms = engine.WordSet("are were have")
	// thirdPersons would be confused with a speaker who becomes "they".
	thirdPersons = lazyregexp.New(`(?i)\b(?:they|them|their|theirs|they're|they'll|they've)\b`)
	selfNamed    = lazyregexp.New(`(?i)\b(?:i|we|me|us|my|our|mine|ours|myself|i'm|i'll|i've|we're|we'll|we've)\b`)
)

// personChanges reports whether a statement of a speaker stays correct in the third person.
func personChanges(text string, speaker transcript.Speaker) bool {
	if thirdPersons.MatchString(text) && selfNamed.MatchString(text) {
		return false
	}
	forms := callerForms
	if speaker == transcript.Caller {
		forms = companyForms
	}
	for _, m := range youVerb.FindAllStringSubmatch(text, -1) {
		if next := strings.ToLower(m[1]); !afterYou[next] && !forms[next] {
			return false
		}
	}
	return true
}

// thirdPerson returns a statement of a speaker in the third person.
func thirdPerson(text string, speaker transcript.Speaker) string {
	text = strings.TrimRight(strings.TrimSpace(text), ".!?,;: ")
	others := secondPerson
	if speaker == transcript.Caller {
		others = toCompany
	}
	for _, s := range append(others[:len(others):len(others)], firstPerson...) {
		text = s.find.ReplaceAllString(text, s.with)
	}
	return lowerFirst(text)
}

// lowerFirst returns a text with its first letter in lower case, unless its first word may be a name or an
// abbreviation.
func lowerFirst(text string) string {
	if len(text) < 2 || text[1] >= 'A' && text[1] <= 'Z' {
		return text
	}
	first, _, _ := strings.Cut(text, " ")
	first, _, _ = strings.Cut(first, "'")
	if !commonStart[strings.ToLower(first)] {
		return text // it may be a name
	}
	return strings.ToLower(text[:1]) + text[1:]
}

var commonStart = engine.WordSet(`a an the they their them it its this that these those there he she his her is are was were has have had
do does did can could will would should may might must my our your i we you the-caller somebody someone nobody everybody
something nothing no not yes and but so if when where how what why which who as at by for from in of on to with after before since
until because one two three four five six seven eight nine ten please send call email open ask bring take put hold let make check
add book cancel block move go give get keep refund credit ship order issue both all some any every each another only just also
please register release transfer restore locate assign restart connect read`)

// callerNamed and agentNamed name the speaker of a request, because "them" would be read as the other side.
var (
	callerNamed = phraseReplacements(`i am`, "the caller is", `i was`, "the caller was", `i have`, "the caller has", `my`, "the caller's",
		`me`, "the caller", `us`, "the caller", `our`, "the caller's")
	agentNamed = phraseReplacements(`me`, "the agent", `us`, "the company", `our`, "the company's")
)

// withSpeakerNamed replaces "me" and "my" by the speaker.
func withSpeakerNamed(text string, speaker transcript.Speaker) string {
	with := agentNamed
	if speaker == transcript.Caller {
		with = callerNamed
	}
	for _, s := range with {
		text = s.find.ReplaceAllString(text, s.with)
	}
	return text
}
