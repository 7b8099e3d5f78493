package nlp

import (
	"strings"

	"soniq/internal/intelligence/language/clause"
	"soniq/internal/intelligence/transcript"
	"soniq/internal/platform/lazyregexp"
)

// flagRule matches statements that a supervisor should look at, by speaker. permits decides by what the clause says of the match.
type flagRule struct {
	kind    string
	caller  bool // the caller says it
	agent   bool // the agent says it
	find    *lazyregexp.Regexp
	permits func(s clause.State) bool
}

const contactVerb = `(?:call|contact|text|email|ring|phone)`
const contacting = `(?:calling|contacting|texting|emailing|ringing|phoning)`

var flagRules = []flagRule{
	{"escalation_request", true, false, lazyregexp.New(
		`(?i)\b(?:(?:speak|talk)(?:ing)? (?:to|with) (?:your|a|the|someone|somebody) (?:manager|supervisor|boss|superior|higher|else|in charge)|(?:get|give|put) me (?:on to |through to )?(?:your|a|the) (?:manager|supervisor|boss)|want (?:your|a|the) (?:manager|supervisor)|escalate (?:this|it)|(?:formal|official) complaint)\b`),
		wanted},
	{"churn_risk", true, false, lazyregexp.New(
		`(?i)\b(?:(?:go|going|switch|switching|move|moving|change|changing) to (?:another|a different|one of your|your) (?:company|provider|bank|supplier|competitors?|carrier)|(?:cancel|close|end|terminate|quit) (?:my|our|the|this) (?:\w+ )?(?:subscription|account|contract|membership|service|plan)|take (?:my|our) business elsewhere|leave you for|no longer (?:want to be|be) (?:a|your) customer|last time i (?:buy|order|use))\b`),
		threatened},
	{"recording_disclosure", false, true, lazyregexp.New(
		`(?i)\b(?:(?:call|conversation|line) (?:is|may be|will be|might be|is being) (?:being )?(?:recorded|monitored)|(?:are|be) (?:recording|recorded) (?:this call|for))\b`),
		func(s clause.State) bool { return s.Asserted() && !s.Reported }},
	{"do_not_contact", true, false, lazyregexp.New(
		`(?i)\b(?:(?:i|we) (?:do not|don't) (?:ever )?want (?:you|anyone|anybody) to ` + contactVerb + `|(?:i|we) (?:do not|don't) want (?:any|your|these|more|to (?:get|receive)(?: any)?(?: more)?) (?:\w+ ){0,2}(?:calls|texts|messages|emails)|(?:i|we) (?:do not|don't|never) want to (?:be (?:called|contacted|texted|emailed|phoned|rung)|hear from you)|want you to stop ` + contacting +
			`|(?:i|we)(?: have|'ve)? (?:already )?(?:told|asked) you (?:\w+ ){0,3}(?:to stop|not to) (?:` + contactVerb + `|` + contacting + `)|(?:take|remove|get|delete) (?:me|us|my number|our number|this number) (?:off|from) (?:your|the|this|all|any) (?:\w+ )?(?:lists?|database|system))\b`),
		wanted},
	{"emergency", true, true, lazyregexp.New(`(?i)\b(?:gas (?:leak|emergency|smell)|(?:this|it|that)(?: is|'s) (?:really |truly )?an emergency|(?:i|we) have an emergency|smell(?:s|ing)? (?:of |like )?(?:gas|rotten eggs|smoke|something burning)|(?:is|are|caught|house|kitchen|car) on fire|ambulance|not (?:\w+ )?breathing|\w+n't (?:\w+ )?breathing|(?:does not|doesn't) breathe|no longer breathing|stopped breathing|can(?:not|'t| not) breathe|(?:trouble|difficulty|problems) breathing|no pulse|unconscious|(?:not|\w+n't) conscious|(?:won't|will not|does not|doesn't) wake up|chest pains?|heart attack|having a stroke|oxygen machine|life support|bleeding (?:heavily|badly|a lot)|call (?:nine one one|nine nine nine|one one two)|(?:held|holding) (?:me |us )?at gunpoint|broke(?:n)? into (?:my|our) (?:house|home|flat|apartment))\b`),
		func(s clause.State) bool { return s.Asserted() && !s.Past }},
}

// emergencyRule is the rule of emergencies, which also count for the mood.
var emergencyRule = flagRules[len(flagRules)-1]

// wanted permits what a speaker states or asks for.
func wanted(s clause.State) bool {
	return (s.Asserted() || s.Requested && !s.Negated && !s.Conditional) && !s.Reported
}

// threatened also permits what follows from a condition: "if it happens again, I will cancel my contract".
func threatened(s clause.State) bool {
	return !s.Negated && !s.Corrected && !s.Reported && !s.Condition && !s.Asked
}

var (
	// noEmergency matches words around an emergency that make it none.
	noEmergency = lazyregexp.New(`(?i)\b(?:ambulance (?:bill|invoice|service|company|driver|fee|charge|ride|costs?|crew)|(?:gave|give|gives|almost had|nearly had|having) (?:me )?a heart attack|gas (?:leak|smell) detectors?)\b`)
	// dropped matches an intention that a speaker no longer has.
	dropped = lazyregexp.New(`(?i)\b(?:thought (?:about|of)|considered|was (?:going|thinking|about)|decided against)\b`)
	// contactBan matches an order not to call, at the beginning of a part of a clause.
	contactBan = lazyregexp.New(`(?i)(?:^|[,;:] |\b(?:and|but|so) )(?:(?:please|just|so|okay|and|no|yes|well|hello|hi)[, ]+)*(?:(?:do not|don't|never) (?:you )?(?:ever )?` + contactVerb +
		`|(?:(?:can|could|would) you (?:please )?)?(?:stop|quit) ` + contacting + `)(?: (?:me|us|here|this number|my (?:number|phone|wife|husband|mother|father|house|office|home))\b|[.!,;]|$)`)
	// contactLimit matches what makes such an order one about time or manner.
	contactLimit = lazyregexp.New(`(?i)^ (?:back (?:today|tomorrow|before|now)|before|after|at|on|until|till|unless|between|so|from|during|if|when|while|in|today|tomorrow|tonight|this|next|mr|mister|sir|madam|names|a|an)\b`)
)

// flagsOf returns each kind of flag at most once, at its first turn.
func flagsOf(lines []line, permits func(rule string) bool) []transcript.Flag {
	var out []transcript.Flag
	for _, r := range flagRules {
		if !permits("flag." + r.kind) {
			continue
		}
		for _, c := range lines {
			if r.flags(c) {
				out = append(out, transcript.Flag{Kind: r.kind, Turn: c.turn})
				break
			}
		}
	}
	return out
}

// flags reports whether a rule marks a clause.
func (r flagRule) flags(c line) bool {
	byCaller := c.speaker == transcript.Caller
	if byCaller && !r.caller || !byCaller && !r.agent || r.kind == "emergency" && noEmergency.MatchString(c.Text) ||
		r.kind == "churn_risk" && dropped.MatchString(c.Text) {
		return false
	}
	for _, m := range r.find.FindAllStringIndex(c.Text, -1) {
		if r.permits(c.At(m[0])) {
			return true
		}
	}
	return r.kind == "do_not_contact" && bansContact(c)
}

// banned reports whether words begin with an order not to call.
func banned(words string) bool {
	m := contactBan.FindStringIndex(words)
	return m != nil && m[0] == 0
}

// bansContact reports whether a clause orders the other side not to call again.
func bansContact(c line) bool {
	m := contactBan.FindStringIndex(c.Text)
	if m == nil || contactLimit.MatchString(c.Text[m[1]:]) {
		return false
	}
	s := c.At(m[0])
	return !s.Conditional && (!s.Asked || !strings.HasSuffix(strings.TrimSpace(c.Text), "?")) && !s.Corrected && !s.Reported
}
