package nlp

import (
	"soniq/internal/intelligence/transcript"
	"soniq/internal/platform/lazyregexp"
)

var (
	handedOver    = lazyregexp.New(`(?i)\b(?:transferring you|transfer you|put you through|putting you through|connect you (?:to|with)|connecting you|hand you over|get my (?:manager|supervisor))\b`)
	problemSolved = lazyregexp.New(`(?i)\b(?:it works|works now|working now|that worked|that fixed it|it is (?:green|on|open|done|fixed) now|it's (?:working|fixed|back) now|problem solved|that solves|got it working|i am in|i'm in|that did it|much better|that helps)\b`)
	thanksWord    = lazyregexp.New(`(?i)\b(?:thank you|thanks|perfect|great|wonderful|excellent|lovely|brilliant|fantastic)\b`)
	leftOpen      = lazyregexp.New(`(?i)\b(?:another company|cancel my (?:account|contract)|not acceptable|unacceptable|speak to (?:your|a) (?:manager|supervisor)|cannot help|can't help|not possible|nothing (?:i|we) can do|still (?:not|does not|doesn't)|i will complain|waste of time)\b`)
	leaveWord     = lazyregexp.New(`(?i)\b(?:leave (?:a|your) message|after the (?:tone|beep)|voice ?mail)\b`)
)

// outcomeOf returns how the call ended; "" if that is not clear.
func outcomeOf(lines []line, promises []promise) transcript.Outcome {
	var transferred, fixed, open, voicemail, thanked, pending bool
	for i, c := range lines {
		late := i >= len(lines)/2
		transferred = transferred || c.speaker != transcript.Caller && c.states(handedOver)
		voicemail = voicemail || c.states(leaveWord)
		open = open || c.speaker == transcript.Caller && c.states(leftOpen)
		fixed = fixed || late && c.states(problemSolved)
		thanked = thanked || late && c.speaker == transcript.Caller && c.states(thanksWord)
	}
	for _, p := range promises {
		pending = pending || !p.done
	}
	switch {
	case voicemail && len(lines) < 8:
		return transcript.Voicemail
	case transferred:
		return transcript.Transferred
	case fixed && !open:
		return transcript.Resolved
	case pending:
		return transcript.FollowUp
	case open:
		return transcript.Unresolved
	case thanked || len(promises) > 0 || len(lines) > 4:
		return transcript.Resolved // questions were answered and nothing is left to do
	}
	return ""
}

// states reports whether a clause asserts words that match, other than in somebody else's speech.
func (c line) states(find *lazyregexp.Regexp) bool {
	for _, m := range find.FindAllStringIndex(c.Text, -1) {
		if s := c.At(m[0]); s.Asserted() && !s.Reported {
			return true
		}
	}
	return false
}
