package nlp

import (
	"soniq/internal/intelligence/transcript"
	"soniq/internal/platform/lazyregexp"
)

// Words that indicate the mood of a speaker. Politeness does not count as joy, nor a problem as anger: the word lists
// are for service calls, not for reviews.
var (
	angry    = lazyregexp.New(`(?i)\b(?:angry|furious|annoy(?:ing|ed)|useless|ridiculous|unacceptable|not acceptable|outrageous|terrible|horrible|awful|worst|disgust\w+|fed up|sick of|nobody (?:ever )?calls|another company|speak to (?:your|a) (?:manager|supervisor)|(?:third|fourth|fifth|sixth) time|lawyer|complain\w*|rude|scam|waste of|disappoint\w+|frustrat\w+|upset|never again|cancel my (?:account|contract|subscription))\b`)
	trouble  = lazyregexp.New(`(?i)\b(?:problem|broken|broke|does not work|doesn't work|not working|stopped working|slow|offline|down again|wrong|(?:too|so|very|days?|hours?|weeks?|is|was|arrived|came|are|still) late|missing|never (?:arrived|came)|stolen|stole|lost|hacked|fraud|charged (?:me )?twice|overcharged|cannot be right|still (?:waiting|not|no)|twice|damaged|crack\w*|leak\w*|flood\w*|dirty|cold|noisy|loud|swollen|pain|hurt\w*|sick|urgent|dangerous|costs me|too (?:expensive|high|much|long)|choppy|dropp\w+|fail\w*|error|cancell?ed|delay\w*|worried|afraid|scared|unfortunately|blinking red|no hot water|not what i ordered|locked out|blocked|expired|nobody (?:\w+ )?(?:told|came|comes|calls?|called|answers?|answered|picked|knows|helps?|helped|cares?|responds?|responded|shows?|showed|knew)|never (?:calls?|called|comes?|works?|worked|answers?|answered)|line is dead|fed up|as high as|burst\w*|ruin\w*|under water|flicker\w*|drip\w*|penalt\w*|freezing|(?:do not|don't) agree|disagree|(?:ran|crashed|bumped) into|cannot sleep|can't sleep|was supposed to|has not worked|hasn't worked|(?:will not|won't) (?:open|work|start|print|load|turn on|connect)|denied|torn|fell|no answer|still (?:have )?no|not (?:eaten|breathing|arrived|heard)|(?:have )?told you|you (?:promised|lost|cancelled)|nobody \w+ed|(?:(?:did|does|has|have|had|is|was|were)(?:n't| not)|never) (?:\w+ )?(?:arrive|arrived|arriving|come|coming|answer|answered|receive|received|work|working|open|start|connect)|(?:can(?:not|'t)|could(?:n't| not)|won't|will not) (?:\w+ )?(?:log in|open|start|connect|reach|find|hear|receive)|(?:lights?|power|line|heating|phones?|internet) (?:is|are) (?:out|off|down)|(?:not|n't) (?:been )?able to|hear nothing|no (?:\w+ )?(?:water|heating|power|electricity|internet|signal|connection|dial tone|pressure|sound|reception|service)|went out|power cut|smells|did not get|didn't get|oxygen machine|but you sent|black|bug)\b`)
	joy      = lazyregexp.New(`(?i)\b(?:wonderful|excellent|fantastic|brilliant|perfect|great|amazing|lovely|thank goodness|thank you so much|thanks so much|very kind|so kind|that is kind|glad|happy|excited|love it|i love|much better|works now|it works|it is green|awesome|good news|relief|relieved|appreciate|fantastic|polite|made my day|(?:so|very|really) (?:nice|helpful|good|fast|kind)|deserves?|generous|donate|celebrat\w*)\b`)
	friendly = lazyregexp.New(`(?i)\b(?:glad|happy to|my pleasure|you are welcome|you're welcome|congratulations|wonderful|of course|no problem|good news|have a (?:nice|great|good))\b`)
	curt     = lazyregexp.New(`(?i)\b(?:that is not my|not our (?:problem|fault)|calm down|you should have|nothing (?:i|we) can do|as i (?:already )?said)\b`)
)

// tally counts the words of a clause that indicate a mood.
type tally struct{ anger, problems, joys, kinds, curts int }

// tallyOf counts the words of a clause. Words that are negated, supposed, asked or taken back do not count, except that denied joy is a
// problem.
func tallyOf(c line) tally {
	joys, denied := c.count(joy)
	kinds, unkind := c.count(friendly)
	n := tally{joys: joys, kinds: kinds, curts: unkind, problems: denied}
	n.anger, _ = c.count(angry)
	problems, _ := c.count(trouble)
	curts, _ := c.count(curt)
	n.problems, n.curts = n.problems+problems, n.curts+curts
	if c.speaker == transcript.Caller && (bansContact(c) || emergencyRule.flags(c)) {
		n.problems++
	}
	return n
}

// count returns how often a clause states words that match, and how often it denies them.
func (c line) count(find *lazyregexp.Regexp) (stated, denied int) {
	for _, m := range find.FindAllStringIndex(c.Text, -1) {
		switch s := c.At(m[0]); {
		case s.Corrected || s.Condition || s.Past || s.Conditional && (find != angry || s.Uncertain) ||
			s.Asked && !presupposes.MatchString(c.Text):
		case s.Negated:
			denied++
		default:
			stated++
		}
	}
	return stated, denied
}

// presupposes matches questions that state their content: "why is it so slow?"
var presupposes = lazyregexp.New(`(?i)\b(?:why|how come|how long)\b`)

// sentimentOf returns the mood of each side. It is neutral unless the words are clear.
func sentimentOf(lines []line, permits func(rule string) bool) transcript.Sentiment {
	var sum tally
	lateJoys := 0
	tallies := make([]tally, len(lines))
	for i, c := range lines {
		n := tallyOf(c)
		tallies[i] = n
		if c.speaker != transcript.Caller {
			sum.kinds, sum.curts = sum.kinds+n.kinds, sum.curts+n.curts
			continue
		}
		sum.anger, sum.problems, sum.joys = sum.anger+n.anger, sum.problems+n.problems, sum.joys+n.joys
		if i >= len(lines)*2/3 {
			lateJoys += n.joys
		}
	}
	s := transcript.Sentiment{Caller: callerMood(sum.anger, sum.problems, sum.joys, lateJoys), Agent: transcript.Neutral}
	switch {
	case sum.curts > sum.kinds:
		s.Agent = transcript.Negative
	case sum.kinds >= 2:
		s.Agent = transcript.Positive
	}
	if !permits("mood." + string(s.Caller)) {
		s.Caller = transcript.Neutral
	}
	s.Overall = s.Caller
	s.CallerTrend = trendOf(tallies, func(i int) (bool, int) {
		return lines[i].speaker == transcript.Caller, 2*tallies[i].joys - tallies[i].problems - 2*tallies[i].anger
	})
	s.AgentTrend = trendOf(tallies, func(i int) (bool, int) {
		return lines[i].speaker != transcript.Caller, tallies[i].kinds - 2*tallies[i].curts
	})
	return s
}

// trendOf compares the words of a side in the second half of the call with those in the first. It is unknown if no
// word counts.
func trendOf(lines []tally, value func(line int) (of bool, n int)) transcript.Trend {
	var halves [2]int
	told := false
	for i := range lines {
		of, n := value(i)
		if !of || n == 0 {
			continue
		}
		told = true
		halves[2*i/len(lines)] += n
	}
	switch change := halves[1] - halves[0]; {
	case !told:
		return transcript.Unknown
	case change >= 2 || change > 0 && halves[1] > 0:
		return transcript.Improving
	case change <= -2 || change < 0 && halves[1] < 0:
		return transcript.Declining
	}
	return transcript.Steady
}

// callerMood returns the mood of the caller. Any anger makes it negative or mixed; problems make it negative unless
// joyful words near the end make it mixed.
func callerMood(anger, problems, joys, lateJoys int) transcript.Mood {
	switch {
	case anger > 0 && lateJoys > 0:
		return transcript.Mixed
	case anger > 0:
		return transcript.Negative
	case problems > 0 && lateJoys > 0:
		return transcript.Mixed
	case problems > joys:
		return transcript.Negative
	case joys > problems:
		return transcript.Positive
	}
	return transcript.Neutral
}
