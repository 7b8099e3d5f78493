package flow

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"golang.org/x/text/language"

	"soniq/internal/identity/org"
	"soniq/internal/platform/db"
)

// Spoken is a text for speech synthesis. An empty language is that of the organisation.
type Spoken struct{ Text, Voice, Language string }

// isLanguage reports whether a text is a language tag or empty.
func isLanguage(tag string) bool {
	_, err := language.Parse(tag)
	return tag == "" || err == nil && len(tag) <= 35
}

func (c *checker) checkLanguage(field, tag string) {
	if !isLanguage(tag) {
		c.fault("invalid_language", "%s must be a language tag such as en or de-CH", field)
	}
}

// warnUnspoken warns of a text that nothing can speak: callers would hear silence.
func (c *checker) warnUnspoken(field string, s Spoken) {
	if strings.TrimSpace(s.Text) == "" || !isLanguage(s.Language) {
		return
	}
	s.Language = cmp.Or(s.Language, c.language)
	wrong, err := c.refs.CheckSpoken(c.ctx, c.org, s)
	c.setErr(err)
	c.warn("language_not_spoken", field, wrong)
}

// warnUnheard warns of callers whose language nothing recognises.
func (c *checker) warnUnheard(field, tag string, agent bool) {
	if !isLanguage(tag) {
		return
	}
	wrong, err := c.refs.CheckHeard(c.ctx, c.org, cmp.Or(tag, c.language), agent)
	c.setErr(err)
	c.warn("language_not_heard", field, wrong)
}

func (c *checker) warn(code, field, wrong string) {
	if wrong != "" {
		c.warnings = append(c.warnings, Fault{c.node, code, field + ": " + wrong})
	}
}

// Unspoken is a text of a published flow that cannot be spoken.
type Unspoken struct {
	Org, FlowID string
	Fault       Fault
}

// maxCheckedFlows limits the flows that UnspokenTexts reads.
const maxCheckedFlows = 200

// UnspokenTexts returns the texts that cannot be spoken in the published flows of all organisations. check returns why a
// text cannot be spoken, or "". It reads maxCheckedFlows flows at most.
func UnspokenTexts(ctx context.Context, q db.Querier, orgs *org.Service, check func(Spoken) string) (all []Unspoken, err error) {
	list, err := orgs.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list organisations: %w", err)
	}
	left := maxCheckedFlows
	for _, o := range list {
		found, err := unspokenOf(ctx, q, o, check, &left)
		if err != nil || left == 0 {
			return append(all, found...), err
		}
		all = append(all, found...)
	}
	return all, nil
}

// unspokenOf is UnspokenTexts for one organisation; left is the number of flows that may be read.
func unspokenOf(ctx context.Context, q db.Querier, o org.Organization, check func(Spoken) string, left *int) (all []Unspoken, err error) {
	published, err := list(ctx, q, (&ListIn{Status: []string{Published}}).filter(o.ID).Page("id", false, "", "", *left))
	if err != nil {
		return nil, err
	}
	for _, f := range published[:min(len(published), *left)] {
		*left--
		v, err := getVersion(ctx, q, o.ID, f.ID, f.Version)
		if err != nil {
			return all, fmt.Errorf("find version of flow %s: %w", f.ID, err)
		}
		_, found, err := compile(ctx, o.ID, speechOnly{check: check, language: o.Language}, v.graph)
		if err != nil {
			return all, err
		}
		for _, w := range found.Warnings {
			if w.Code == "language_not_spoken" {
				all = append(all, Unspoken{o.ID, f.ID, w})
			}
		}
	}
	return all, nil
}

// speechOnly accepts every reference, and checks texts.
type speechOnly struct {
	acceptedReferences
	check    func(Spoken) string
	language string // of the organisation
}

// CheckSpoken implements References.
func (s speechOnly) CheckSpoken(_ context.Context, _ string, x Spoken) (string, error) {
	x.Language = cmp.Or(x.Language, s.language)
	return s.check(x), nil
}
