package clause

import (
	"slices"
	"strings"

	"soniq/internal/intelligence/language/timephrase"
	"soniq/internal/platform/lazyregexp"
)

var wordPattern = lazyregexp.New(`[A-Za-z0-9]+(?:['’][A-Za-z]+)*|[,;:–—]`)

// read reads one clause.
func read(text string) Clause {
	c := Clause{Text: text}
	for _, m := range wordPattern.FindAllStringIndex(text, -1) {
		c.words = append(c.words, word{strings.ReplaceAll(strings.ToLower(text[m[0]:m[1]]), "’", "'"), m[0]})
	}
	c.split()
	c.findNegators()
	c.findCorrections()
	c.findConditions()
	c.findQuestions()
	for i := range c.parts {
		said := c.said(c.parts[i])
		c.parts[i].uncertain = uncertain.MatchString(said)
		c.parts[i].past = past.MatchString(said)
	}
	return c
}

func (c *Clause) at(i int) string {
	if i < 0 || i >= len(c.words) {
		return ""
	}
	return c.words[i].text
}

// said returns the words of a part in lower case.
func (c *Clause) said(p part) string {
	var all []string
	for _, w := range c.words[p.from:p.to] {
		all = append(all, w.text)
	}
	return strings.Join(all, " ")
}

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

var (
	signs    = set(", ; : – —")
	subjects = set(`i we you he she it they there this that these those nobody somebody someone anybody everyone everybody something nothing
		i'm i'll i've i'd we're we'll we've we'd you're you'll you've you'd he's she's it's they're they'll there's that's he'll she'll
		it'll let let's please who which what where how why`)
	determiners = set("the a an my our your his her their its no some any both all every each")
	finite      = set(`is are was were am be been has have had do does did can could will would shall should may might must isn't aren't
		wasn't weren't hasn't haven't hadn't don't doesn't didn't can't cannot couldn't won't wouldn't shouldn't mustn't i'm i'll i've i'd
		we're we'll we've you're you'll you've he's she's it's they're there's that's says said told asked asks wants want need needs went
		goes came comes works stopped broke arrived lost got gets keeps makes smells looks`)
	hard  = set("but because although though unless if whereas until while whether yet")
	joint = set("and so or then since when once")
	leads = set("and but so then or because since when once well okay also that yet just please")
)

// split divides the words into parts.
func (c *Clause) split() {
	from := 0
	cut := func(at int) {
		if at > from {
			c.parts = append(c.parts, part{from: from, to: at})
			from = at
		}
	}
	runs := c.runs()
	for i := range c.words {
		switch w := c.at(i); {
		case signs[w]:
			cut(i + 1)
		case hard[w] && !(w == "if" && (c.at(i-1) == "even" || c.at(i-1) == "as" || c.at(i-1) == "only")):
			cut(i)
		case (w == "even" || w == "only") && c.at(i+1) == "if":
			cut(i)
		case joint[w] && c.newClause(i+1), i > from+2 && c.mainClause(from, i), runs && i > from && c.runOn(i):
			cut(i)
		}
	}
	cut(len(c.words))
	for i := 1; i < len(c.parts); i++ {
		c.parts[i].list = !c.own(c.parts[i])
	}
}

// runs reports whether a clause may hold several sentences, as recognised speech without punctuation does.
func (c *Clause) runs() bool { return len(c.words) >= 12 && !strings.ContainsAny(c.Text, ",;:–—") }

// mainClause reports whether the clause that depends on a condition begins at a word: "if it fails again I will …".
func (c *Clause) mainClause(from, at int) bool {
	lead := c.at(c.lead(part{from: from, to: at}))
	if lead != "if" && lead != "unless" {
		return false
	}
	switch w := c.at(at); w {
	case "i", "we":
		return finite[c.at(at+1)]
	case "i'll", "we'll", "i'm", "i'd", "please", "then":
		return true
	}
	return false
}

// runOn reports whether a clause without a conjunction begins at a word, as in recognised speech.
func (c *Clause) runOn(at int) bool {
	before := c.at(at - 1)
	if !subjects[c.at(at)] || joint[before] || hard[before] || reporting[before] ||
		subjects[before] && before != "you" && before != "it" && before != "that" {
		return false
	}
	switch before {
	case "that", "as", "than", "the", "time", "way", "one", "sure", "afraid", "hope", "wish", "what", "after", "before", "no", "is", "was",
		"like":
		return false
	}
	return finite[c.at(at+1)] || strings.Contains(c.at(at), "'") && c.at(at) != "let's"
}

// newClause reports whether a clause with a subject begins at a word.
func (c *Clause) newClause(at int) bool {
	w := c.at(at)
	if subjects[w] || hard[w] || w == "then" || w == "no" && finite[c.at(at+2)] {
		return true
	}
	if !determiners[w] {
		return false
	}
	for i := at + 1; i < at+5; i++ {
		if finite[c.at(i)] {
			return true
		}
		if joint[c.at(i)] || signs[c.at(i)] {
			return false
		}
	}
	return false
}

// own reports whether a part has a subject or a verb, or begins a new thought, such as "but a fire".
func (c *Clause) own(p part) bool {
	for i := p.from; i < p.to; i++ {
		if w := c.at(i); subjects[w] || finite[w] || i == p.from && (hard[w] || w == "not" || w == "no") {
			return true
		}
	}
	return false
}

// lead returns the index of the first word of a part behind conjunctions.
func (c *Clause) lead(p part) int {
	at := p.from
	for at < p.to-1 && (leads[c.at(at)] || signs[c.at(at)]) {
		at++
	}
	return at
}

var (
	// conditionStart matches the beginning of a part that states a condition.
	conditionStart = lazyregexp.New(`^(?:only |but |and |so |or |then |also |please )*(?:if|unless|providing|provided|assuming|suppose|supposing|otherwise|or else|in case|as long as|in the event|depending|in that case|had (?:i|we|you|he|she|it|they)|were (?:i|it|you|we)|should (?:you|it|he|she|they|that|this|anything|the|there)|on condition|on the condition)\b`)
	// conditionInside matches a condition that no comma separates.
	conditionInside = lazyregexp.New(`\b(?:in case|as long as|provided|providing|on condition|depending on|imagine|pretend|let's say|hypothetically|only when|assuming|subject to)\b`)
	// politeness matches conditions that are none, and indirect questions.
	politeness = lazyregexp.New(`^(?:and |but |even )*(?:even if|if (?:possible|at all possible|you (?:can|could|would|please|don't mind|do not mind|will)|that is (?:ok|okay|all right|alright|fine)|that's (?:ok|okay|all right|alright|fine)|it is not too much|i may|i remember)\b)`)
	// asksWhether matches words before an indirect question.
	asksWhether = lazyregexp.New(`\b(?:see|check|checked|know|ask|asked|asks|wonder|wondering|find out|sure|confirm|test|look|tell me|say|decide|decided|care|verify|unclear)(?: ,)?$`)
	uncertain   = lazyregexp.New(`\b(?:might|maybe|perhaps|possibly|probably|could|not sure|unsure|i doubt|(?:i|we) (?:hope|guess|suppose)|hopefully|would|i'd|we'd|(?:i|we|you|he|she|it|they|that|there|this|who) may)\b`)
	// past matches what is over.
	past = lazyregexp.New(`\b(?:(?:had|was|were|happened) .*(?:last (?:year|month|summer|winter|spring|autumn|fall)|(?:years?|months?|weeks?) ago)|(?:last (?:year|month|summer|winter|spring|autumn|fall)|(?:years?|months?|weeks?) ago) .*\b(?:had|was|were|happened)|used to|in the past|back then|(?:is|are|has|have) (?:gone|stopped|been (?:fixed|repaired|put out))|false alarm|under control|is over|already (?:out|fixed|over|left|gone)|was fixed|years before)\b`)
)

// findConditions marks the parts that state a condition or depend on one. A condition governs the parts behind it up to "but", and the part
// before it if no conjunction separates them.
func (c *Clause) findConditions() {
	governed := false
	for i := range c.parts {
		p := &c.parts[i]
		said := strings.Trim(c.said(*p), " ,;:")
		if c.at(p.from) == "but" {
			governed = false
		}
		indirect := i > 0 && asksWhether.MatchString(strings.Trim(c.said(c.parts[i-1]), " ,"))
		switch {
		case politeness.MatchString(said):
		case c.at(c.lead(*p)) == "whether" || indirect && c.at(c.lead(*p)) == "if":
			p.question = true
		case conditionStart.MatchString(said) && !(strings.HasPrefix(said, "should") && len(c.parts) == 1):
			p.condition, governed = true, true
			if i > 0 && !joint[c.at(p.from)] && c.at(p.from) != "but" {
				c.governBefore(i)
			}
		case conditionInside.MatchString(said):
			p.condition = true
		}
		alternative := c.at(p.from) == "or" && subjects[c.at(p.from+1)] // "or I will leave"
		p.conditional = p.conditional || p.condition || governed || alternative
	}
}

// governBefore marks the parts before a condition up to a conjunction.
func (c *Clause) governBefore(i int) {
	for i--; i >= 0; i-- {
		c.parts[i].conditional = true
		if c.parts[i].question || joint[c.at(c.parts[i].from)] || c.at(c.parts[i].from) == "but" {
			return
		}
	}
}

var (
	asks = lazyregexp.New(`^(?:what|where|when|who|whom|whose|why|how|which|can (?:i|you|we|he|she|it|they|somebody|someone|anybody|anyone)|could (?:i|you|we|it|they|somebody|someone)|may (?:i|we)|would (?:you|it|that)|do (?:i|you|we|they)|don't (?:you|i|we)|does|doesn't (?:it|he|she)|did (?:i|you|he|she|it|they|not)|didn't (?:i|you)|is (?:it|that|there|this|he|she|anyone|anybody|my|the|your)|isn't (?:it|that|there|he|she|this)|are (?:you|there|the|they|we)|aren't (?:you|there|they)|was (?:it|there|that)|am i|should (?:i|we)|shall (?:i|we)|will (?:it|you|he|she|they|there|the|somebody|someone)|won't you|have (?:you|they|we|i)|has (?:he|she|it|my|the|anyone|anybody))\b`)
	// requests matches questions that ask for an action of the listener or for leave.
	requests = lazyregexp.New(`^(?:(?:can|could|would) (?:you|somebody|someone|anybody|anyone)|will (?:you|somebody|someone) please|won't you please|(?:can|could|may) (?:i|we) (?:please )?(?:have|get|speak|talk|ask|see|be)|how (?:do|can) (?:i|we)|would you mind)\b`)
	// openings are words before a question that are no part of it.
	openings = set("hi hello hey yes no yeah okay ok well so and but then or right sure um uh oh also please sorry , : ;")
)

// findQuestions marks the parts that ask.
func (c *Clause) findQuestions() {
	marked := strings.HasSuffix(strings.TrimSpace(c.Text), "?")
	for i := range c.parts {
		p := &c.parts[i]
		at := p.from
		for at < p.to-1 && openings[c.at(at)] {
			at++
		}
		start := c.said(part{from: at, to: p.to})
		asking := asks.MatchString(start) && !(p.condition && strings.HasPrefix(start, "should")) && !c.timeClause(i, start)
		if asking && requests.MatchString(start) {
			c.Request = true
		}
		p.question = p.question || asking || marked && i == len(c.parts)-1
		c.Question = c.Question || asking || marked
	}
	for i := len(c.parts) - 1; i > 0; i-- {
		if c.parts[i].question && c.parts[i].list {
			c.parts[i-1].question = true
		}
	}
}

// timeClause reports whether a part that begins like a question tells a time or describes something: "when it is fixed", "which is new".
func (c *Clause) timeClause(i int, start string) bool {
	first, rest, _ := strings.Cut(start, " ")
	switch first {
	case "when", "where", "which", "who", "how", "what":
		second, _, _ := strings.Cut(rest, " ")
		return i > 0 && !slices.Contains([]string{"is", "are", "do", "does", "did", "can", "could", "will", "should", "was", "much", "many",
			"long"}, second) ||
			i == 0 && first == "when" && (subjects[second] || determiners[second])
	}
	return false
}

// correctionMarks stand alone between signs, or before the right words.
var correctionMark = lazyregexp.New(`^(?:,? ?)(?:no|no wait|wait no|no sorry|sorry|i mean|i meant|scratch that|correction|rather|or rather|actually no)(?: ,)?$`)

// findCorrections marks what a correction takes back.
func (c *Clause) findCorrections() {
	for i := 1; i < len(c.parts); i++ {
		p := c.parts[i]
		said := c.said(p)
		mark := correctionMark.MatchString(said) && i+1 < len(c.parts)
		if !mark && !correctionInside.MatchString(said) {
			continue
		}
		c.Correction = true
		rest := c.words[p.from].from
		if mark {
			rest = c.words[c.parts[i+1].from].from
		}
		if timephrase.Only(correctionLead.ReplaceAllString(c.Text[rest:], "")) || !c.ownClause(i, mark) {
			continue
		}
		for k := range i {
			c.parts[k].corrected = true
		}
	}
	c.Correction = c.Correction || correctionAnywhere.MatchString(strings.ToLower(c.Text))
}

var (
	correctionInside   = lazyregexp.New(`^(?:no (?:wait|i|we|sorry)|i mean|i meant|scratch that|or rather|sorry (?:i|we)|actually no)\b`)
	correctionAnywhere = lazyregexp.New(`\b(?:no wait|i meant|scratch that|or rather|make that)\b|[,.?!;] (?:no|sorry|i mean|wait|actually|rather|make that)[,.]? `)
)

// ownClause reports whether the part that corrects has a subject and a verb of its own.
func (c *Clause) ownClause(i int, mark bool) bool {
	if mark {
		i++
	}
	p := c.parts[i]
	own, verb := false, false
	for k := p.from; k < p.to; k++ {
		w := c.at(k)
		own = own || subjects[w] && w != "please"
		verb = verb || finite[w] || w == "not"
	}
	return own && verb
}
