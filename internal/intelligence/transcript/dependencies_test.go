package transcript_test

import (
	"context"
	"time"

	"soniq/internal/intelligence/transcript"
	"soniq/internal/platform/db"
)

// noAgents are the dependencies of a service without voice agents, vocabulary and time zones.
type noAgents struct{ language string }

func (noAgents) KnownUtterances(context.Context, db.Querier, string, string) ([]transcript.KnownUtterance, error) {
	return nil, nil
}

func (noAgents) AwaitUtterances(context.Context, string, string) error { return nil }

func (noAgents) DeleteUtterances(context.Context, db.Querier, string, string) error { return nil }

func (noAgents) Zone(context.Context, string) (*time.Location, error) { return time.UTC, nil }

func (a noAgents) CallLanguage(context.Context, db.Querier, string, string) (string, error) {
	return a.language, nil
}

func (noAgents) Vocabulary(context.Context, string, string) ([]transcript.Term, error) {
	return nil, nil
}
