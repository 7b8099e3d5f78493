package nlp

import (
	"slices"
	"strings"

	"soniq/internal/intelligence/engine"
	"soniq/internal/intelligence/language/timephrase"
	"soniq/internal/intelligence/transcript"
	"soniq/internal/platform/lazyregexp"
)

// promise is an action that a side will do, has done for the other, or was asked to do.
type promise struct {
	owner transcript.Speaker
	text  string // as an instruction: "open a ticket with the network team", or quoted
	due   string // "by Thursday"
	turn  int
	done  bool // done during the call
	plain bool // the text is a statement, not an instruction
	asked bool // the other side asked for it
	offer bool // "can", which the other side may refuse
	rule  string
	line  line
}

var (
	willPromise = lazyregexp.New(`(?i)^(?:(?:and|then|so|okay|yes|no|well|now|but|tomorrow|today) )*(?:i|we)(?: will|'ll| am going to|'m going to| are going to|'re going to| can)(?: also| then| now| just| personally| definitely| certainly)* (.+)$`)
	// doingPromise matches a promise in the present continuous: "I am sending a technician".
	doingPromise = lazyregexp.New(`(?i)^(?:(?:and|so|okay) )*(?:i am|i'm|we are|we're) (send|releas|lock|transferr?|open|putt?|order|issu|book|creat|refund|block|assign|escalat|fil|mark|connect|mov|cancell?|ship|email|call|add|restor|forward|schedul|remov|updat|chang|credit|arrang|replac|resett?|log)ing (.+)$`)
	// doneAction matches actions done during the call.
	doneAction = lazyregexp.New(`(?i)^(?:(?:and|so|okay|done|there) )*(?:i|we)(?: have|'ve)?(?: just| now| already| also)? (opened|sent|booked|ordered|created|moved|marked|removed|blocked|added|assigned|corrected|disabled|issued|transferred|cancell?ed|refunded|reset|restarted|updated|changed|escalated|released|filed|put|credited|reported|noted|scheduled|extended|applied|emailed|placed|swapped) (.+)$`)
	// thirdPartyActs matches a promise that a third party will act.
	thirdPartyActs = lazyregexp.New(`(?i)\b(?:technician|courier|crew|porter|driver|adjuster|plumber|engineer|engineering|colleague|manager|supervisor|mechanic|nurse|doctor|specialist|somebody|someone|team|replacement|refund|parcel|package|the rest|part|security|card|statement|letter|bill|invoice|label)\b.*\b(?:will|comes?|collects?|goes|arrives?|calls?|is on (?:its|the|his|her) way|ships?|contacts?|visits?)\b`)
	onItsWay       = lazyregexp.New(`(?i)^(?:of course,? )?(?:we ship|it (?:is|will be) (?:on its way|shipped|delivered)|it's on its way|(?:the|an|a|your|our) \w+(?: \w+)? (?:is|are) on (?:its|the|his|her|their) way|it ships|you are (?:booked|confirmed)|your \w+ (?:stays|is (?:booked|confirmed|reserved)))\b`)
	// otherSideRequest matches a request to the other side.
	otherSideRequest = lazyregexp.New(`(?i)^(?:(?:and|so|okay|yes|then|well) )*(?:would you be so kind as to |(?:can|could|would) you (?:please )?|will you please |please (?:also )?|you should (?:also )?|you (?:need|have) to |make sure (?:to |you )|(?:do not|don't) forget to |as a workaround,? |i need you to )(.+)$`)
	// callerInstruction matches instructions of an agent to the caller for after the call.
	callerInstruction = lazyregexp.New(`(?i)^(?:(?:then|so|and|just) )*((?:keep|bring|save|send|sign|fill|back up|upload|contact|add|register|return|leave|(?:call|phone|email|text) (?:me|us|your|the)) .+)$`)
	// agentNeeds matches things that the caller must give to the agent.
	agentNeeds = lazyregexp.New(`(?i)^(?:(?:and|so|then|yes|of course),? )*(?:i|we)(?: will|'ll)? need ((?:a|an|the|your) .+)$`)
	// timedPromise matches a promise with a time: of a third party's action, or of something that the caller will
	// have.
	timedPromise = lazyregexp.New(`(?i)^(?:(?:and|so|then) )*(?:(?:our|the|a|an|your|my)(?: \w+){1,3}|they|she|he|it|you)(?: will|'ll) |^you should (?:have|get|receive) \w+`)
	// perfectAction matches an action in the perfect tense.
	perfectAction = lazyregexp.New(`(?i)^(?:(?:and|so) )*(?:i|we)(?: have|'ve)(?: just| now| already| also)? (given|put|set|made|taken|written|\w{2,}ed) (.+)$`)
	// thenWill matches a promise in the second half of a sentence.
	thenWill = lazyregexp.New(`(?i)\b(?:so|and|but|then|,) (?:i|we)(?: will|'ll) (.+)$`)
	goAhead  = lazyregexp.New(`(?i)\bgo ahead(?: and)? ?(.*)$`)
	// smallRequest matches requests that require no action after the call.
	smallRequest = lazyregexp.New(`(?i)\b(?:hold on|hold the line|hold please|stay on|one moment|a moment|spell|repeat|confirm your|verify your|tell me|give me your|your (?:name|account number|date of birth|tracking number|order number|postcode)|say that|speak up|hurry|leave (?:a|your) message|help you|help me|let me (?:look|check|see)|anything else|do for you|can i|which)\b`)
	nonAction    = lazyregexp.New(`(?i)^(?:look|check (?:that|this|it|if|whether|for|on)|see|have a look|take a look|understand|help|apologi[sz]e|imagine|hear|ask you|tell you|explain|offer|take (?:it|that|the|this)|do that|wait|not|be |go to another|never|think|speak|get back to you\?|have the|hold|like|love|prefer)\b`)
)

// promisesOf returns the actions of both sides, at most ten, each once. An action that the other side refuses at once is none.
func promisesOf(lines []line, permits func(rule string) bool) []promise {
	var out []promise
	seen := map[string]bool{}
	for i, c := range lines {
		for _, p := range promised(c) {
			if !permits("todo."+p.rule) || len(out) == 10 || seen[p.text] || wordCount(p.text) < 2 || refused(p, lines[i+1:]) ||
				answered(p, lines[i+1:]) {
				continue
			}
			seen[p.text] = true
			p.turn = c.turn
			if !permits("due") {
				p.due = ""
			}
			out = append(out, p)
		}
	}
	return out
}

// todoRule finds an action in a clause. Its groups are joined to the action.
type todoRule struct {
	name   string
	agent  bool // only what an agent says
	caller bool // only what a caller says
	find   *lazyregexp.Regexp
	read   func(c line, at int, m []string) (promise, bool)
}

// todoRules are tried in this order.
var todoRules = []todoRule{
	{"request", false, false, otherSideRequest, readRequest},
	{"promise", false, false, willPromise, readPromise},
	{"go_ahead", false, true, goAhead, readGoAhead},
	{"order", false, true, callerOrder, readOrder},
	{"needs", true, false, agentNeeds, readNeeds},
	{"instruction", true, false, callerInstruction, readInstruction},
	{"progressive", true, false, doingPromise, readDoing},
	{"done", true, false, doneAction, readDone},
	{"done", true, false, perfectAction, readPerfect},
	conjoined,
	{"third_party", true, false, anyStatement, readThirdParty},
}

// conjoined finds a promise behind a request or another statement of the same clause.
var conjoined = todoRule{"conjoined", false, false, thenWill, readConjoined}

// promised returns the actions in one clause: the first that a rule finds, and a promise behind a request. Only what the clause states with
// certainty counts.
func promised(c line) []promise {
	for _, r := range todoRules {
		p, found := r.apply(c)
		if !found {
			continue
		}
		out := []promise{p}
		if second, ok := conjoined.apply(c); ok && p.asked {
			out = append(out, second)
		}
		return slices.DeleteFunc(out, func(p promise) bool { return p.rule == "" })
	}
	return nil
}

// apply reads the action that a rule finds in a clause. An action that does not hold has no rule.
func (r todoRule) apply(c line) (p promise, found bool) {
	text, start := c.core()
	m := r.find.FindStringSubmatchIndex(text)
	if m == nil || r.agent && c.speaker == transcript.Caller || r.caller && c.speaker != transcript.Caller {
		return promise{}, false
	}
	at := start + m[0]
	if len(m) > 2 && m[2] >= 0 {
		at = start + m[2]
	}
	if p, found = r.read(c, at, groups(text, m)); !found || !c.holds(at, p.asked) {
		return promise{}, found
	}
	p.rule, p.line, p.due = r.name, c, c.dueOf(at)
	if p.text == "" {
		p.text = c.quotedSpan()
	}
	return p, true
}

// groups returns the groups of a match.
func groups(text string, m []int) []string {
	var out []string
	for i := 0; i < len(m); i += 2 {
		if m[i] >= 0 {
			out = append(out, text[m[i]:m[i+1]])
		} else {
			out = append(out, "")
		}
	}
	return out
}

// holds reports whether an action at an offset is stated with certainty, or asked for.
func (c line) holds(at int, asked bool) bool {
	s := c.At(at)
	if asked && s.Requested {
		s.Uncertain, s.Asked = false, false
	}
	return s.Certain() && !c.DeniesObject(at)
}

// dueOf returns the time by which the action at an offset is due, in the words used: behind it, or at the beginning of the clause.
func (c line) dueOf(at int) string {
	if p, ok := timephrase.Find(c.Span(at)); ok {
		return p.Text
	}
	text, start := c.core()
	if p, ok := timephrase.Find(text[:max(at-start, 0)]); ok && p.From < 8 {
		return p.Text
	}
	return ""
}

// quotedSpan returns the words of a clause as a quotation.
func (c line) quotedSpan() string {
	return `"` + strings.ReplaceAll(strings.TrimRight(c.coreText(), ",;: "), `"`, "'") + `"`
}

// span returns words of a clause as an action with the person changed; it is empty if only a quotation is safe.
func (c line) span(words string) string {
	words = farewell.ReplaceAllString(words, "")
	if c.Negative() || c.Conditional() || c.Correction || c.Question && !c.Request || !personChanges(words, c.speaker) {
		return ""
	}
	return lowerFirst(thirdPerson(words, c.speaker))
}

func readRequest(c line, _ int, m []string) (promise, bool) {
	if wordCount(m[1]) < 2 || banned(m[1]) || smallRequest.MatchString(m[0]) || askedLook.MatchString(m[1]) {
		return promise{}, false
	}
	p := promise{owner: other(c.owner()), asked: true}
	if !c.Negative() && !c.Conditional() && !c.Correction && personChanges(m[1], c.speaker) {
		p.text = lowerFirst(thirdPerson(withSpeakerNamed(m[1], c.speaker), c.speaker))
	}
	return p, true
}

func readPromise(c line, _ int, m []string) (promise, bool) {
	can := modal.MatchString(m[0])
	if nonAction.MatchString(m[1]) || can && abstract(m[0]) {
		return promise{}, false
	}
	return promise{owner: c.owner(), text: c.span(m[1]), offer: true}, true
}

func readConjoined(c line, _ int, m []string) (promise, bool) {
	return promise{owner: c.owner(), text: c.span(m[1]), offer: true}, !nonAction.MatchString(m[1]) && wordCount(m[1]) >= 3
}

func readGoAhead(c line, _ int, m []string) (promise, bool) {
	return promise{owner: transcript.Agent, text: c.span(m[1]), asked: true}, wordCount(m[1]) >= 2
}

func readOrder(c line, _ int, m []string) (promise, bool) {
	return promise{owner: transcript.Agent, text: c.span(m[1]), asked: true}, wordCount(m[1]) >= 3
}

func readNeeds(c line, _ int, m []string) (promise, bool) {
	p := promise{owner: transcript.Caller, asked: true}
	if p.text = c.span(m[1]); p.text != "" {
		p.text = "provide " + p.text
	}
	return p, wordCount(m[1]) >= 3
}

func readInstruction(c line, _ int, m []string) (promise, bool) {
	return promise{owner: transcript.Caller, text: c.span(m[1]), asked: true}, wordCount(m[1]) >= 3
}

func readDoing(c line, _ int, m []string) (promise, bool) {
	return promise{owner: transcript.Agent, text: c.span(stem(m[1]) + " " + m[2])}, true
}

func readDone(c line, _ int, m []string) (promise, bool) {
	return promise{owner: transcript.Agent, text: c.span(strings.ToLower(m[1]) + " " + m[2]), done: true}, !bygone.MatchString(m[0])
}

func readPerfect(c line, at int, m []string) (promise, bool) {
	if inactiveVerb.MatchString(m[1]) || wordCount(m[2]) < 2 {
		return promise{}, false
	}
	return readDone(c, at, m)
}

// readThirdParty reads a statement that somebody else will act, or that the caller will have something, by a time.
func readThirdParty(c line, at int, m []string) (promise, bool) {
	if c.NegativeAt(at) || bygone.MatchString(m[0]) {
		return promise{}, false
	}
	_, timed := timephrase.Find(m[0])
	if !onItsWay.MatchString(m[0]) && !((thirdPartyActs.MatchString(m[0]) || timedPromise.MatchString(m[0])) && timed) {
		return promise{}, false
	}
	p := promise{owner: transcript.Agent, plain: true, offer: true}
	if c.Statement() && personChanges(m[0], c.speaker) {
		p.text = thirdPerson(m[0], c.speaker)
	}
	return p, true
}

var (
	anyStatement = lazyregexp.New(`(?s)^.+$`)
	// bygone matches statements about actions that did not happen or are over.
	bygone = lazyregexp.New(`(?i)\b(?:was|were|had|supposed to|(?:should|would|could) have (?:been|come|gone|had|sent|got|\w+ed)|yesterday|ago)\b`)
	// askedLook matches requests that are answered at once.
	askedLook = lazyregexp.New(`(?i)^(?:look|like|mind|prefer|want|know|remember|think|check|confirm|verify|see|tell|explain|help|say|repeat|hear|understand|imagine|believe|be|have|get|wait|do that|come in)\b`)
	// callerOrder matches orders of a caller.
	callerOrder = lazyregexp.New(`(?i)^(?:(?:and|so|just|now) )*((?:send|take|remove|close|order|call|block|email|deliver) .+)$`)
)

// inactiveVerb matches verbs in the past that do not change anything.
var inactiveVerb = lazyregexp.New(`(?i)^(?:noticed|received|learned|tried|looked|checked|wanted|needed|liked|called|asked|talked|waited|used|worked|happened|closed)$`)

// abstract reports whether a clause with "can" or "would" is talk, such as "I can see" or "I would say", and no
// promise. It is a promise only with a verb of actionVerbs.
func abstract(text string) bool {
	m := modal.FindStringSubmatch(text)
	return m != nil && !actionVerbs[strings.ToLower(m[1])]
}

var (
	modal       = lazyregexp.New(`(?i)^(?:(?:and|so|okay|yes|no|well|then|now|but) )*(?:i|we) (?:can)(?: also| then)? (\w+)`)
	actionVerbs = engine.WordSet("post text drop bring deliver forward fetch double set release file reimburse collect send open book order refund credit email ship replace move put schedule transfer issue arrange cancel block reset restore give mail")
)

// other returns the other side.
func other(side transcript.Speaker) transcript.Speaker {
	if side == transcript.Caller {
		return transcript.Agent
	}
	return transcript.Caller
}

func (c line) owner() transcript.Speaker {
	if c.speaker == transcript.Caller {
		return transcript.Caller
	}
	return transcript.Agent
}

// farewell matches the thanks and goodbyes that follow a promise in recognised speech without punctuation.
var farewell = lazyregexp.New(`(?i)[,. ]+(?:(?:good ?bye|bye|thank you(?: very much)?|thanks|okay|have a (?:nice|good) day)[,. ]*)+$`)

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

// told returns a promise as a line of a note.
func (p promise) told(permits func(rule string) bool) string {
	subject := "Agent"
	if p.owner == transcript.Caller {
		subject = "Caller"
	}
	if strings.HasPrefix(p.text, `"`) || !permits("third_person") {
		return p.line.quoted()
	}
	verb := " will "
	switch {
	case p.plain:
		verb = " said that "
	case p.done:
		verb = " "
	case p.asked:
		verb = " was asked to "
	}
	return subject + verb + p.text + p.line.clock() + "."
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
