package nlp

import (
	"regexp"
	"strings"

	"soniq/internal/intelligence/engine"
	"soniq/internal/intelligence/transcript"
)

// promise is an action that a side will do, has done for the other, or was asked to do.
type promise struct {
	owner transcript.Speaker
	text  string // as an instruction: "open a ticket with the network team"
	due   string // "by Thursday"
	turn  int
	done  bool // done during the call
	plain bool // the text is a statement, not an instruction
}

var (
	willPromise = regexp.MustCompile(`(?i)^(?:(?:and|then|so|okay|yes|well|now) )*(?:i|we)(?: will|'ll| am going to|'m going to| are going to| can| would)(?: also| then| now| just| personally)* (.+)$`)
	// doingPromise matches a promise in the present continuous: "I am sending a technician".
	doingPromise = regexp.MustCompile(`(?i)^(?:(?:and|so|okay) )*(?:i am|i'm|we are|we're) (send|releas|lock|transferr?|open|putt?|order|issu|book|creat|refund|block|assign|escalat|fil|mark|connect|mov|cancell?|ship|email|call|add|restor|forward|schedul|remov|updat|chang|credit|arrang|replac|resett?|log)ing (.+)$`)
	// doneAction matches actions done during the call.
	doneAction = regexp.MustCompile(`(?i)^(?:(?:and|so|okay|done|there) )*(?:i|we)(?: have|'ve)?(?: just| now| already| also)? (opened|sent|booked|ordered|created|moved|marked|removed|blocked|added|assigned|corrected|disabled|issued|transferred|cancell?ed|refunded|reset|restarted|updated|changed|escalated|released|filed|put|credited|reported|noted|scheduled|extended|applied|emailed|placed|swapped) (.+)$`)
	// thirdPartyActs matches a promise that a third party will act.
	thirdPartyActs = regexp.MustCompile(`(?i)\b(?:technician|courier|crew|porter|driver|adjuster|plumber|engineer|engineering|colleague|manager|supervisor|mechanic|nurse|doctor|specialist|somebody|someone|team|replacement|refund|parcel|package|the rest|part|security|card|statement|letter|bill|invoice|label)\b.*\b(?:will|comes?|collects?|goes|arrives?|calls?|is on (?:its|the|his|her) way|ships?|contacts?|visits?)\b`)
	onItsWay       = regexp.MustCompile(`(?i)^(?:of course,? )?(?:we ship|it (?:is|will be) (?:on its way|shipped|delivered)|it's on its way|it ships|you are (?:booked|confirmed)|your \w+ (?:stays|is (?:booked|confirmed|reserved)))\b`)
	// otherSideRequest matches a request to the other side.
	otherSideRequest = regexp.MustCompile(`(?i)^(?:(?:and|so|okay|yes|then|well) )*(?:(?:can|could|would|will) you (?:please )?|please (?:also )?|you should (?:also )?|you (?:need|have) to |make sure (?:to |you )|as a workaround,? |i need you to )(.+)$`)
	// callerInstruction matches instructions of an agent to the caller for after the call.
	callerInstruction = regexp.MustCompile(`(?i)^(?:(?:then|so|and|just) )*((?:keep|bring|save|send|sign|fill|back up|upload|contact|add|register|return|leave|(?:call|phone|email|text) (?:me|us|your|the)) .+)$`)
	// agentNeeds matches things that the caller must give to the agent.
	agentNeeds = regexp.MustCompile(`(?i)^(?:(?:and|so|then|yes|of course),? )*(?:i|we)(?: will|'ll)? need ((?:a|an|the|your) .+)$`)
	// timedPromise matches a promise with a time: of a third party's action, or of something that the caller will
	// have.
	timedPromise = regexp.MustCompile(`(?i)^(?:(?:and|so|then) )*(?:(?:our|the|a|an|your|my)(?: \w+){1,3}|they|she|he|it|you)(?: will|'ll) |^you should (?:have|get|receive) \w+`)
	// perfectAction matches an action in the perfect tense.
	perfectAction = regexp.MustCompile(`(?i)^(?:(?:and|so) )*(?:i|we)(?: have|'ve)(?: just| now| already| also)? (given|put|set|made|taken|written|\w{2,}ed) (.+)$`)
	// thenWill matches a promise in the second half of a sentence.
	thenWill = regexp.MustCompile(`(?i)\b(?:so|and|but|then|,) (?:i|we)(?: will|'ll) (.+)$`)
	goAhead  = regexp.MustCompile(`(?i)\bgo ahead(?: and)? ?(.*)$`)
	// smallRequest matches requests that require no action after the call.
	smallRequest = regexp.MustCompile(`(?i)\b(?:hold on|hold the line|hold please|stay on|one moment|a moment|spell|repeat|confirm your|verify your|tell me|give me your|your (?:name|account number|date of birth|tracking number|order number|postcode)|say that|speak up|hurry|help you|help me|let me (?:look|check|see)|anything else|do for you|can i|which)\b`)
	nonAction    = regexp.MustCompile(`(?i)^(?:look|check (?:that|this|it|if|whether|for|on)|see|have a look|take a look|understand|help|apologi[sz]e|imagine|hear|ask you|tell you|explain|offer|take (?:it|that|the|this)|do that|wait|not|be |go to another|never|think|speak|get back to you\?|have the|hold|like|love|prefer)\b`)
	duePhrase    = regexp.MustCompile(`(?i)\b(?:today|tonight|tomorrow(?: (?:morning|afternoon|evening|at \w+))?|this (?:evening|afternoon|morning|week|month)|next (?:week|month|monday|tuesday|wednesday|thursday|friday|saturday|sunday)|(?:on|by|until|before) (?:monday|tuesday|wednesday|thursday|friday|saturday|sunday|noon|the end of the \w+|\w+ o'clock)|within (?:the |an? )?(?:\w+ )?(?:hour|hours|days?|minutes|weeks?)|in (?:\w+ )?(?:\w+ )(?:minutes|hours|days|weeks|months)|at (?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|noon)(?: \w+)?|right (?:now|away))\b`)
)

// promisesOf returns the actions of both sides, at most ten, each once.
func promisesOf(clauses []clause) []promise {
	var out []promise
	seen := map[string]bool{}
	for _, c := range clauses {
		p, ok := promised(c)
		if !ok || len(out) == 10 || seen[p.text] || wordCount(p.text) < 2 {
			continue
		}
		seen[p.text] = true
		p.turn, p.due = c.turn, duePhrase.FindString(c.text)
		out = append(out, p)
	}
	return out
}

// promised returns the action in one clause, if there is one.
func promised(c clause) (promise, bool) {
	text := c.core()
	if m := otherSideRequest.FindStringSubmatch(text); m != nil && wordCount(m[1]) >= 2 && !smallRequest.MatchString(text) {
		return request(c, m[1])
	}
	if c.question || strings.HasPrefix(strings.ToLower(text), "thank") {
		return promise{}, false
	}
	if m := willPromise.FindStringSubmatch(text); m != nil && !nonAction.MatchString(m[1]) && !abstract(text) {
		return promise{owner: c.owner(), text: instruction(m[1], c.speaker)}, true
	}
	if m := thenWill.FindStringSubmatch(text); m != nil && !nonAction.MatchString(m[1]) && wordCount(m[1]) >= 3 {
		return promise{owner: c.owner(), text: instruction(m[1], c.speaker)}, true
	}
	if c.speaker == transcript.Caller {
		if m := goAhead.FindStringSubmatch(text); m != nil && wordCount(m[1]) >= 2 {
			return promise{owner: transcript.Agent, text: instruction(m[1], c.speaker)}, true
		}
		return promise{}, false
	}
	if m := agentNeeds.FindStringSubmatch(text); m != nil && wordCount(m[1]) >= 3 {
		return promise{owner: transcript.Caller, text: instruction("provide "+m[1], c.speaker)}, true
	}
	if m := callerInstruction.FindStringSubmatch(text); m != nil && wordCount(m[1]) >= 3 {
		return promise{owner: transcript.Caller, text: instruction(m[1], c.speaker)}, true
	}
	if m := doingPromise.FindStringSubmatch(text); m != nil {
		return promise{owner: transcript.Agent, text: instruction(stem(m[1])+" "+m[2], c.speaker)}, true
	}
	if m := doneAction.FindStringSubmatch(text); m != nil {
		return promise{owner: transcript.Agent, text: instruction(strings.ToLower(m[1])+" "+m[2], c.speaker), done: true}, true
	}
	if m := perfectAction.FindStringSubmatch(text); m != nil && !inactiveVerb.MatchString(m[1]) && wordCount(m[2]) >= 2 {
		return promise{owner: transcript.Agent, text: instruction(strings.ToLower(m[1])+" "+m[2], c.speaker), done: true}, true
	}
	if onItsWay.MatchString(text) || (thirdPartyActs.MatchString(text) || timedPromise.MatchString(text)) && duePhrase.MatchString(text) {
		return promise{owner: transcript.Agent, text: thirdPerson(text, c.speaker), plain: true}, true
	}
	return promise{}, false
}

// inactiveVerb matches verbs in the past that do not change anything.
var inactiveVerb = regexp.MustCompile(`(?i)^(?:noticed|received|learned|tried|looked|checked|wanted|needed|liked|called|asked|talked|waited|used|worked|happened|closed)$`)

// abstract reports whether a clause with "can" or "would" is talk, such as "I can see" or "I would say", and no
// promise. It is a promise only with a verb of actionVerbs.
func abstract(text string) bool {
	m := modal.FindStringSubmatch(text)
	return m != nil && !actionVerbs[strings.ToLower(m[1])]
}

var (
	modal       = regexp.MustCompile(`(?i)^(?:(?:and|so|okay|yes|well) )*(?:i|we) (?:can|would)(?: also| then)? (\w+)`)
	actionVerbs = engine.WordSet("post text drop bring deliver forward fetch double set release file reimburse collect send open book order refund credit email ship replace move put schedule transfer issue arrange cancel block reset restore give mail")
)

// request returns the action that one side asks of the other.
func request(c clause, what string) (promise, bool) {
	owner := transcript.Agent
	if c.speaker != transcript.Caller {
		owner = transcript.Caller
	}
	return promise{owner: owner, text: lowerFirst(thirdPerson(withSpeakerNamed(what, c.speaker), c.speaker))}, true
}

func (c clause) owner() transcript.Speaker {
	if c.speaker == transcript.Caller {
		return transcript.Caller
	}
	return transcript.Agent
}

// farewell matches the thanks and goodbyes that follow a promise in recognised speech without punctuation.
var farewell = regexp.MustCompile(`(?i)[,. ]+(?:(?:good ?bye|bye|thank you(?: very much)?|thanks|okay|have a (?:nice|good) day)[,. ]*)+$`)

// instruction returns an action in the imperative, without the words that promise it.
func instruction(text string, speaker transcript.Speaker) string {
	return lowerFirst(thirdPerson(farewell.ReplaceAllString(text, ""), speaker))
}

// stem returns the infinitive of a verb stem that doingPromise matched before "-ing".
func stem(v string) string {
	switch v = strings.ToLower(v); v {
	case "releas", "issu", "creat", "fil", "mov", "restor", "schedul", "remov", "updat", "chang", "arrang", "replac", "escalat":
		return v + "e"
	case "transferr", "putt", "cancell", "resett":
		return v[:len(v)-1]
	}
	return v
}

// predicate returns a promise of the agent as the predicate of a sentence about the agent.
func (p promise) predicate() string {
	switch {
	case p.plain:
		return "said that " + p.text
	case p.done:
		return p.text
	}
	return "will " + p.text
}

// item returns a promise as an action item.
func (p promise) item() transcript.ActionItem {
	owner := string(p.owner)
	item := transcript.ActionItem{Text: sentence(p.text), Owner: &owner, Turn: &p.turn}
	if p.due != "" {
		item.Due = &p.due
	}
	return item
}

var (
	handedOver    = regexp.MustCompile(`(?i)\b(?:transferring you|transfer you|put you through|putting you through|connect you (?:to|with)|connecting you|hand you over|get my (?:manager|supervisor))\b`)
	problemSolved = regexp.MustCompile(`(?i)\b(?:it works|works now|working now|that worked|that fixed it|it is (?:green|on|open|done|fixed) now|it's (?:working|fixed|back) now|problem solved|that solves|got it working|i am in|i'm in|that did it|much better|that helps)\b`)
	thanksWord    = regexp.MustCompile(`(?i)\b(?:thank you|thanks|perfect|great|wonderful|excellent|lovely|brilliant|fantastic)\b`)
	leftOpen      = regexp.MustCompile(`(?i)\b(?:another company|cancel my (?:account|contract)|not acceptable|unacceptable|speak to (?:your|a) (?:manager|supervisor)|cannot help|can't help|not possible|nothing (?:i|we) can do|still (?:not|does not|doesn't)|i will complain|waste of time)\b`)
	leaveWord     = regexp.MustCompile(`(?i)\b(?:leave (?:a|your) message|after the (?:tone|beep)|voice ?mail)\b`)
)

// outcomeOf returns how the call ended; "" if that is not clear.
func outcomeOf(clauses []clause, promises []promise) transcript.Outcome {
	var transferred, fixed, open, voicemail, thanked, pending bool
	for i, c := range clauses {
		late := i >= len(clauses)/2
		transferred = transferred || c.speaker != transcript.Caller && handedOver.MatchString(c.text)
		voicemail = voicemail || leaveWord.MatchString(c.text)
		open = open || c.speaker == transcript.Caller && leftOpen.MatchString(c.text)
		fixed = fixed || late && problemSolved.MatchString(c.text)
		thanked = thanked || late && c.speaker == transcript.Caller && thanksWord.MatchString(c.text)
	}
	for _, p := range promises {
		pending = pending || !p.done
	}
	switch {
	case voicemail && len(clauses) < 8:
		return transcript.Voicemail
	case transferred:
		return transcript.Transferred
	case fixed && !open:
		return transcript.Resolved
	case pending:
		return transcript.FollowUp
	case open:
		return transcript.Unresolved
	case thanked || len(promises) > 0 || len(clauses) > 4:
		return transcript.Resolved // questions were answered and nothing is left to do
	}
	return ""
}
