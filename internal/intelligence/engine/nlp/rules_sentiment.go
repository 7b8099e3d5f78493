package nlp

import (
	"regexp"

	"soniq/internal/intelligence/transcript"
)

// Words that indicate the mood of a speaker. Politeness does not count as joy, nor a problem as anger: the word lists
// are for service calls, not for reviews.
var (
	angry    = regexp.MustCompile(`(?i)\b(?:angry|furious|ridiculous|unacceptable|not acceptable|outrageous|terrible|horrible|awful|worst|disgust\w+|fed up|sick of|nobody (?:ever )?calls|another company|speak to (?:your|a) (?:manager|supervisor)|(?:third|fourth|fifth|sixth) time|lawyer|complain\w*|rude|scam|waste of|disappoint\w+|frustrat\w+|upset|never again|cancel my (?:account|contract|subscription))\b`)
	trouble  = regexp.MustCompile(`(?i)\b(?:problem|broken|broke|does not work|doesn't work|not working|stopped working|won't|slow|offline|down again|wrong|(?:too|so|very|days?|hours?|weeks?|is|was|arrived|came|are|still) late|missing|never (?:arrived|came)|stolen|stole|lost|hacked|fraud|charged (?:me )?twice|overcharged|cannot be right|still (?:waiting|not|no)|twice|damaged|crack\w*|leak\w*|flood\w*|dirty|cold|noisy|loud|swollen|pain|hurt\w*|sick|urgent|dangerous|costs me|too (?:expensive|high|much|long)|choppy|dropp\w+|fail\w*|error|cancell?ed|delay\w*|worried|afraid|scared|unfortunately|blinking red|no hot water|not what i ordered|locked out|blocked|expired|nobody|as high as|burst\w*|ruin\w*|under water|flicker\w*|drip\w*|penalt\w*|freezing|(?:do not|don't) agree|disagree|(?:ran|crashed|bumped) into|cannot sleep|can't sleep|was supposed to|has not worked|hasn't worked|(?:will not|won't) (?:open|work|start|print|load|turn on|connect)|denied|torn|fell|no answer|still (?:have )?no|not (?:eaten|breathing|arrived|heard)|(?:have )?told you|you (?:promised|lost|cancelled)|nobody \w+ed|(?:do not|don't|stop) call\w*|went out|power cut|smells|did not get|didn't get|oxygen machine|but you sent|black|bug)\b`)
	joy      = regexp.MustCompile(`(?i)\b(?:wonderful|excellent|fantastic|brilliant|perfect|great|amazing|lovely|thank goodness|thank you so much|thanks so much|very kind|so kind|that is kind|glad|happy|excited|love it|i love|much better|works now|it works|it is green|awesome|good news|relief|relieved|appreciate|fantastic|polite|made my day|(?:so|very|really) (?:nice|helpful|good|fast|kind)|deserves?|generous|donate|celebrat\w*)\b`)
	friendly = regexp.MustCompile(`(?i)\b(?:glad|happy to|my pleasure|you are welcome|you're welcome|congratulations|wonderful|of course|no problem|good news|have a (?:nice|great|good))\b`)
	curt     = regexp.MustCompile(`(?i)\b(?:that is not my|not our (?:problem|fault)|calm down|you should have|nothing (?:i|we) can do|as i (?:already )?said)\b`)
)

// sentimentOf returns the mood of each side. It is neutral unless the words are clear.
func sentimentOf(clauses []clause) transcript.Sentiment {
	var anger, problems, joys, lateJoys, kinds, curts int
	for i, c := range clauses {
		if c.speaker != transcript.Caller {
			kinds += count(friendly, c.text)
			curts += count(curt, c.text)
			continue
		}
		anger += count(angry, c.text)
		problems += count(trouble, c.text)
		j := count(joy, c.text)
		joys += j
		if i >= len(clauses)*2/3 {
			lateJoys += j
		}
	}
	s := transcript.Sentiment{Caller: callerMood(anger, problems, joys, lateJoys), Agent: transcript.Neutral}
	switch {
	case curts > kinds:
		s.Agent = transcript.Negative
	case kinds >= 2:
		s.Agent = transcript.Positive
	}
	s.Overall = s.Caller
	s.CallerTrend = trendOf(clauses, func(c clause) (bool, int) {
		return c.speaker == transcript.Caller, 2*count(joy, c.text) - count(trouble, c.text) - 2*count(angry, c.text)
	})
	s.AgentTrend = trendOf(clauses, func(c clause) (bool, int) {
		return c.speaker != transcript.Caller, count(friendly, c.text) - 2*count(curt, c.text)
	})
	return s
}

// trendOf compares the words of a side in the second half of the call with those in the first. It is unknown if no
// word counts.
func trendOf(clauses []clause, value func(clause) (of bool, n int)) transcript.Trend {
	var halves [2]int
	told := false
	for i, c := range clauses {
		of, n := value(c)
		if !of || n == 0 {
			continue
		}
		told = true
		halves[2*i/len(clauses)] += n
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

func count(r *regexp.Regexp, text string) int { return len(r.FindAllStringIndex(text, -1)) }
