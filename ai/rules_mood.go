package ai

import (
	"regexp"

	"soniq/transcript"
)

// Politeness is no joy and a problem is no anger: the lexicon is one of service calls, not of reviews.
var (
	angry   = regexp.MustCompile(`(?i)\b(?:angry|furious|ridiculous|unacceptable|not acceptable|outrageous|terrible|horrible|awful|worst|disgust\w+|fed up|sick of|nobody (?:ever )?calls|another company|speak to (?:your|a) (?:manager|supervisor)|(?:third|fourth|fifth|sixth) time|lawyer|complain\w*|rude|scam|waste of|disappoint\w+|frustrat\w+|upset|never again|cancel my (?:account|contract|subscription))\b`)
	trouble = regexp.MustCompile(`(?i)\b(?:problem|broken|broke|does not work|doesn't work|not working|stopped working|won't|slow|offline|down again|wrong|late|missing|never (?:arrived|came)|stolen|stole|lost|hacked|fraud|charged (?:me )?twice|overcharged|cannot be right|still (?:waiting|not|no)|twice|damaged|crack\w*|leak\w*|flood\w*|dirty|cold|noisy|loud|swollen|pain|hurt\w*|sick|urgent|dangerous|costs me|too (?:expensive|high|much|long)|choppy|dropp\w+|fail\w*|error|cancell?ed|delay\w*|worried|afraid|scared|unfortunately|blinking red|no hot water|not what i ordered|locked out|blocked|expired|nobody|as high as)\b`)
	joy     = regexp.MustCompile(`(?i)\b(?:wonderful|excellent|fantastic|brilliant|perfect|great|amazing|lovely|thank goodness|thank you so much|thanks so much|very kind|so kind|that is kind|glad|happy|excited|love it|i love|much better|works now|it works|it is green|awesome|good news|relief|relieved|appreciate)\b`)
	kind    = regexp.MustCompile(`(?i)\b(?:glad|happy to|my pleasure|you are welcome|you're welcome|congratulations|wonderful|of course|no problem|good news|have a (?:nice|great|good))\b`)
	curt    = regexp.MustCompile(`(?i)\b(?:that is not my|not our (?:problem|fault)|calm down|you should have|nothing (?:i|we) can do|as i (?:already )?said)\b`)
)

// sentimentOf tells the mood of each side. It says neutral unless the words are clear.
func sentimentOf(clauses []clause) transcript.Sentiment {
	var anger, problems, joys, lateJoys, kinds, curts int
	for i, c := range clauses {
		if c.speaker != transcript.Caller {
			kinds += count(kind, c.text)
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
	return s
}

// callerMood weighs what the caller said: anger settles it, troubles need joy at the end to be forgotten.
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
