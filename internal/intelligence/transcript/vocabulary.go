package transcript

import (
	"context"
	"time"
)

// A Term is what an organisation calls something, and what no dictionary may have: a name of one word or a few.
type Term struct {
	// Text is how it is written, as in "Zyntrix" or "Ilse Vandermeer".
	Text string `json:"text"`
	// SoundsLike are ways to say it, each in words that are read aloud as they are written ("zin tricks"), or in capital phones of the CMU
	// dictionary ("Z IH N T R IH K S"). Without any an engine finds out from Text.
	SoundsLike []string `json:"sounds_like,omitempty"`
	// Chosen tells that somebody entered it: it is written as it stands wherever it is said.
	Chosen bool `json:"chosen,omitempty"`
	// Person tells that it is the name of a person, each word of which is one too. Words of other terms that a dictionary has are written as
	// in the term only where all of it is said, and so are words of any that everybody uses.
	Person bool `json:"person,omitempty"`
}

// MaxTerms is how many an engine is told of at most, the most relevant first.
const MaxTerms = 500

// A Vocabulary looks up the terms of a call, the most relevant first. nil knows none.
type Vocabulary func() []Term

// most are the terms, as many as an engine is told of.
func (v Vocabulary) most() []Term {
	if v == nil {
		return nil
	}
	all := v()
	return all[:min(len(all), MaxTerms)]
}

// vocabularyLimit bounds the look-up of terms: words that come later than that are heard without.
const vocabularyLimit = 5 * time.Second

// vocabulary is that of a call. Where it cannot be looked up, the call is heard without.
func (s *Service) vocabulary(org, callID string) Vocabulary {
	if s.Vocabulary == nil {
		return nil
	}
	return func() []Term {
		ctx, cancel := context.WithTimeout(context.Background(), vocabularyLimit)
		defer cancel()
		terms, err := s.Vocabulary(ctx, org, callID)
		if err != nil {
			s.Log.Warn("vocabulary not looked up", "org", org, "call", callID, "err", err)
		}
		return terms
	}
}
