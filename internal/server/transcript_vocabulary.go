package server

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"soniq/internal/intelligence/transcript"
	"soniq/internal/telephony/call"
)

// This file tells what recognises speech which words of its own an organisation uses.

// Of what an organisation has, so much is looked up at most: the rest is as likely to be mistaken for other words as to be said.
const (
	mostQueueNames = 50
	mostUserNames  = 300
)

// vocabulary looks up the terms that may be said in a call: what the organisation entered, who the caller is, and the names of its
// people and queues, in this order.
func (p *Platform) vocabulary(ctx context.Context, org, callID string) ([]transcript.Term, error) {
	o, err := p.orgs.Get(ctx, org)
	if err != nil {
		return nil, fmt.Errorf("find organisation: %w", err)
	}
	var all terms
	for _, t := range o.Transcripts.Vocabulary {
		all.add(transcript.Term{Text: t.Term, SoundsLike: t.SoundsLike, UserDefined: true})
	}
	if !o.Transcripts.LearnNames {
		return all.list, nil
	}
	c, err := p.calls.Find(ctx, org, callID)
	if err != nil {
		return all.list, fmt.Errorf("find call: %w", err)
	}
	all.names(true, parties(c)...)
	if c.Contact != nil {
		all.names(false, c.Contact.Company)
	}
	all.names(false, o.Name)
	queues, err := p.queues.AllNames(ctx, org, mostQueueNames)
	if err != nil {
		return all.list, err
	}
	all.names(false, queues...)
	users, err := p.users.Names(ctx, org, mostUserNames)
	all.names(true, users...)
	return all.list, err
}

// parties are the names of who calls or is called.
func parties(c call.Call) (names []string) {
	if c.FromName != nil {
		names = append(names, *c.FromName)
	}
	if c.Contact != nil {
		names = append(names, c.Contact.Name)
	}
	return names
}

// terms is a vocabulary in the making: each term once.
type terms struct {
	list []transcript.Term
	seen map[string]bool
}

func (t *terms) add(x transcript.Term) {
	key := strings.ToLower(x.Text)
	if t.seen == nil {
		t.seen = map[string]bool{}
	}
	if t.seen[key] || len(x.Text) > longestName {
		return
	}
	t.seen[key] = true
	t.list = append(t.list, x)
}

// longestName is what is a name at most, in bytes; anything longer is a text that got into its place.
const longestName = 120

// names adds what people, or things, are called; numbers, which devices show in place of names, are none.
func (t *terms) names(persons bool, all ...string) {
	for _, name := range all {
		if strings.ContainsFunc(name, unicode.IsLetter) && !strings.Contains(name, "@") {
			t.add(transcript.Term{Text: name, Person: persons})
		}
	}
}
