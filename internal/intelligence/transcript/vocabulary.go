package transcript

import (
	"context"
	"time"
)

// Term is a name of one or more words that an organisation uses and that may be in no dictionary.
type Term struct {
	// Text is the written form, such as "Zyntrix" or "Ilse Vandermeer".
	Text string `json:"text"`
	// SoundsLike lists pronunciations. Each is written as words that are read as they are written ("zin tricks"), or in upper-case phones
	// of the CMU dictionary ("Z IH N T R IH K S"). If it is empty the engine derives the pronunciation from Text.
	SoundsLike []string `json:"sounds_like,omitempty"`
	// UserDefined is set if a user entered the term: it is written in this form wherever it is recognised.
	UserDefined bool `json:"chosen,omitempty"`
	// Person is set for the name of a person, each word of which is a name too. Words of other terms that are in a
	// dictionary are written as in the term only if the whole term is said. The same applies to common words of any
	// term.
	Person bool `json:"person,omitempty"`
}

// MaxTerms limits the terms passed to an engine, the most relevant first.
const MaxTerms = 500

// Vocabulary returns the terms of a call, the most relevant first. nil has none.
type Vocabulary func() []Term

// limited returns at most MaxTerms terms.
func (v Vocabulary) limited() []Term {
	if v == nil {
		return nil
	}
	all := v()
	return all[:min(len(all), MaxTerms)]
}

// vocabularyTimeout limits the query of terms: segments that come later are recognised without terms.
const vocabularyTimeout = 5 * time.Second

// vocabulary returns the Vocabulary of a call. If the query fails the call is recognised without terms.
func (s *Service) vocabulary(org, callID string) Vocabulary {
	return func() []Term {
		ctx, cancel := context.WithTimeout(context.Background(), vocabularyTimeout)
		defer cancel()
		terms, err := s.cfg.Vocabularies.Vocabulary(ctx, org, callID)
		if err != nil {
			s.cfg.Log.Warn("vocabulary not looked up", "org", org, "call", callID, "err", err)
		}
		return terms
	}
}
