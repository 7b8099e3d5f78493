package sms_test

import (
	"context"
	"strings"

	"soniq/internal/messaging/sms"
	"soniq/internal/platform/db"
	"soniq/internal/sandbox/sandbox"
)

// newSandbox returns a sandbox whose inbound messages go to a message service. It has neither calls nor a reset.
func newSandbox(d *db.DB, messages *sms.Service) *sandbox.Service {
	return sandbox.New(sandbox.Config{DB: d, Numbers: plainNumbers{}, Messages: messages, Suspensions: &sandbox.SuspendedOrgs{},
		Callers: struct{ sandbox.Callers }{}, Calls: struct{ sandbox.Calls }{}, Jobs: struct{ sandbox.Jobs }{},
		Data: struct{ sandbox.Data }{}})
}

// plainNumbers accepts numbers in E.164.
type plainNumbers struct{}

func (plainNumbers) ParseNumber(_ context.Context, _, text string) (string, bool, error) {
	return text, strings.HasPrefix(text, "+") && len(text) > 8, nil
}
