package nlp

import (
	"slices"
	"strings"

	"soniq/internal/platform/lazyregexp"
)

// refusal matches the refusal of a request, declined that of an offer or a promise.
var (
	refusal  = lazyregexp.New(`(?i)^(?:no\b|nope|unfortunately|(?:i'm|i am) (?:afraid|sorry),? (?:i|we|that|but|no)|sorry,? (?:i|we|that|but|no)|(?:i|we) (?:can't|cannot|don't|do not|won't))`)
	declined = lazyregexp.New(`(?i)^(?:no(?: thanks| thank you|,| need|\.)|please (?:don't|do not)|don't|that (?:is not|isn't|won't be) necessary)`)
)

// refused reports whether the first clause of the other side behind a promise refuses it.
func refused(p promise, rest []line) bool {
	for _, c := range rest {
		if c.speaker == p.line.speaker {
			if c.turn != p.line.turn {
				return false
			}
			continue
		}
		text := strings.TrimSpace(c.Text)
		return p.asked && refusal.MatchString(text) && !strings.HasPrefix(strings.ToLower(text), "no problem") ||
			p.offer && declined.MatchString(text)
	}
	return false
}

// answered reports whether the other side answers a request at once with an action that says the same or more, which then stands for it.
func answered(p promise, rest []line) bool {
	turn := -1
	for _, c := range rest {
		if c.turn == p.line.turn {
			continue
		}
		if c.speaker == p.line.speaker || turn >= 0 && c.turn != turn {
			return false
		}
		turn = c.turn
		if p.asked && (met.MatchString(c.coreText()) || slices.ContainsFunc(promised(c), p.standsFor)) {
			return true
		}
	}
	return false
}

// standsFor reports whether an action makes a request superfluous: it names its object and is as definite about the time.
func (p promise) standsFor(by promise) bool {
	return !by.asked && by.owner == p.owner && (by.due != "" || p.due == "") && !anaphor.MatchString(by.line.coreText())
}

// anaphor matches words that only the request explains.
var anaphor = lazyregexp.New(`(?i)\b(?:it|that|them|this|these|those|one|so)\b`)

// met matches the answer that a request is fulfilled.
var met = lazyregexp.New(`(?i)^(?:it|that|this) (?:is|was|has been) (?:now |already )?(?:blocked|done|sent|closed|booked|ordered|changed|corrected|removed|cancell?ed|moved|fixed|refunded)\b`)
