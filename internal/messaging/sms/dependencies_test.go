package sms_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"soniq/internal/messaging/sms"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/op"
	"soniq/internal/platform/redact"
)

// fakeDependencies are the dependencies of the service: org_a has the numbers own and silent, and the user usr_1. Tests set fields before
// the first request.
type fakeDependencies struct {
	carrier  string                    // of all messages
	stopped  atomic.Bool               // messages to the outside are stopped
	outside  sms.Carrier               // the connected carrier; nil: none
	contacts map[string]*event.Contact // of org_a by number
	numbers  map[string][]string       // numbers of contacts of org_a
	redacted redact.Policy             // of org_a
}

func (f *fakeDependencies) Redaction(_ context.Context, org string) (redact.Policy, error) {
	if org != "org_a" {
		return redact.Policy{}, nil
	}
	return f.redacted, nil
}

func (f *fakeDependencies) OwnNumber(_ context.Context, _ db.Querier, org, text string) (sms.OwnNumber, bool, error) {
	n := map[string]sms.OwnNumber{own: {ID: "num_1", Number: own, SMS: true}, "num_1": {ID: "num_1", Number: own, SMS: true},
		silent: {ID: "num_2", Number: silent}}[text]
	return n, n.ID != "" && org == "org_a", nil
}

func (f *fakeDependencies) ParseNumber(_ context.Context, _, text string) (string, bool, error) {
	return text, strings.HasPrefix(text, "+") && len(text) > 8, nil
}

func (f *fakeDependencies) RouteMessage(_ context.Context, _ string, _ sms.OwnNumber, to string) (string, string, error) {
	if !strings.HasPrefix(to, "+") {
		return "", "", op.Fail("destination_not_allowed", "no carrier")
	}
	return f.carrier, to, nil
}

func (f *fakeDependencies) OutboundStopped(context.Context) (bool, error) {
	return f.stopped.Load(), nil
}

func (f *fakeDependencies) UserExists(_ context.Context, _, id string) (bool, error) {
	return id == "usr_1", nil
}

func (f *fakeDependencies) Connected(context.Context, string, string) (sms.Carrier, error) {
	return f.outside, nil
}

func (f *fakeDependencies) Alternative(context.Context, string, string, string, []string) (string, error) {
	return "", nil
}

func (f *fakeDependencies) Lane(string) string { return "" }

func (f *fakeDependencies) LookupContact(_ context.Context, org, e164 string) *event.Contact {
	if org != "org_a" {
		return nil
	}
	return f.contacts[e164]
}

func (f *fakeDependencies) ContactNumbers(_ context.Context, org, id string) ([]string, error) {
	if org != "org_a" {
		return nil, nil
	}
	return f.numbers[id], nil
}

func (f *fakeDependencies) ForwardToPhones(context.Context, string, sms.Message) error { return nil }

// Digest returns a value that distinguishes numbers and does not contain them.
func (f *fakeDependencies) Digest(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return fmt.Sprintf("%x", b)
}
