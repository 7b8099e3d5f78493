package nlp

import (
	"regexp"

	"soniq/internal/intelligence/transcript"
)

// flagRules match statements that a supervisor should look at, by speaker.
var flagRules = []struct {
	kind   string
	caller bool // the caller says it
	agent  bool // the agent says it
	find   *regexp.Regexp
}{
	{"escalation_request", true, false, regexp.MustCompile(
		`(?i)\b(?:(?:speak|talk)(?:ing)? (?:to|with) (?:your|a|the|someone|somebody) (?:manager|supervisor|boss|superior|higher|else|in charge)|(?:get|give|put) me (?:on to |through to )?(?:your|a|the) (?:manager|supervisor|boss)|want (?:your|a|the) (?:manager|supervisor)|escalate (?:this|it)|(?:formal|official) complaint)\b`)},
	{"churn_risk", true, false, regexp.MustCompile(
		`(?i)\b(?:(?:go|going|switch|switching|move|moving|change|changing) to (?:another|a different|one of your|your) (?:company|provider|bank|supplier|competitors?|carrier)|(?:cancel|close|end|terminate|quit) (?:my|our|the|this) (?:\w+ )?(?:subscription|account|contract|membership|service|plan)|take (?:my|our) business elsewhere|leave you for|no longer (?:want to be|be) (?:a|your) customer|last time i (?:buy|order|use))\b`)},
	{"recording_disclosure", false, true, regexp.MustCompile(
		`(?i)\b(?:(?:call|conversation|line) (?:is|may be|will be|might be|is being) (?:being )?(?:recorded|monitored)|(?:are|be) (?:recording|recorded) (?:this call|for))\b`)},
	{"do_not_contact", true, false, regexp.MustCompile(
		`(?i)\b(?:(?:do not|don't|stop|never|quit) (?:ever )?(?:call|contact|text|email|ring|phone|calling|contacting|texting|emailing|ringing|phoning) (?:me|us|here|this number)|(?:take|remove|get) (?:me|us|my number|our number|this number) (?:off|from) (?:your|the|this) (?:\w+ )?(?:list|database|system))\b`)},
	{"emergency", true, true, regexp.MustCompile(`(?i)\b(?:gas (?:leak|emergency)|smell(?:s|ing)? (?:of |like )?(?:gas|rotten eggs|smoke|something burning)|(?:is|are|caught|house|kitchen|car) on fire|ambulance|not breathing|can(?:not|'t) breathe|unconscious|chest pains?|heart attack|having a stroke|oxygen machine|life support|bleeding (?:heavily|badly|a lot)|call (?:nine one one|nine nine nine|one one two)|(?:held|holding) (?:me |us )?at gunpoint|broke(?:n)? into (?:my|our) (?:house|home|flat|apartment))\b`)},
}

// flagsOf returns each kind of flag at most once, at its first turn.
func flagsOf(clauses []clause) []transcript.Flag {
	var out []transcript.Flag
	for _, r := range flagRules {
		for _, c := range clauses {
			byCaller := c.speaker == transcript.Caller
			if (byCaller && r.caller || !byCaller && r.agent) && r.find.MatchString(c.text) {
				out = append(out, transcript.Flag{Kind: r.kind, Turn: c.turn})
				break
			}
		}
	}
	return out
}
