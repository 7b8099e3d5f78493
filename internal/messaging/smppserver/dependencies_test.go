package smppserver_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"soniq/internal/messaging/sms"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/op"
)

// fakeDependencies are the dependencies of the message service and of the SMPP server: org_a has three numbers.
type fakeDependencies struct{}

func (fakeDependencies) OwnNumber(_ context.Context, _ db.Querier, org, text string) (sms.OwnNumber, bool, error) {
	for id, n := range map[string]sms.OwnNumber{"num_1": {Number: own, SMS: true}, "num_2": {Number: silent}, "num_3": {Number: second, SMS: true}} {
		if n.ID = id; org == "org_a" && (text == id || text == n.Number) {
			return n, true, nil
		}
	}
	return sms.OwnNumber{}, false, nil
}

func (fakeDependencies) ParseNumber(_ context.Context, _, text string) (string, bool, error) {
	return text, strings.HasPrefix(text, "+") && len(text) > 8, nil
}

func (fakeDependencies) RouteMessage(_ context.Context, _ string, _ sms.OwnNumber, to string) (string, string, error) {
	if !strings.HasPrefix(to, "+1202") {
		return "", "", op.Fail("destination_not_allowed", "no carrier")
	}
	return "sandbox", to, nil
}

func (fakeDependencies) UserExists(context.Context, string, string) (bool, error) { return false, nil }

func (fakeDependencies) Connected(context.Context, string, string) (sms.Carrier, error) {
	return nil, nil
}

func (fakeDependencies) Alternative(context.Context, string, string, string, []string) (string, error) {
	return "", nil
}

func (fakeDependencies) Lane(string) string { return "" }

func (fakeDependencies) LookupContact(context.Context, string, string) *event.Contact { return nil }

func (fakeDependencies) ContactNumbers(context.Context, string, string) ([]string, error) {
	return nil, nil
}

func (fakeDependencies) ForwardToPhones(context.Context, string, sms.Message) error { return nil }

func (fakeDependencies) Environment(context.Context, string) (access.Environment, error) {
	return access.Sandbox, nil
}

// Digest returns a value that distinguishes texts and does not contain them.
func (fakeDependencies) Digest(text string) string {
	b := []byte(text)
	slices.Reverse(b)
	return fmt.Sprintf("%x", b)
}

// OutboundStopped implements sms.Router.
func (f fakeDependencies) OutboundStopped(context.Context) (bool, error) { return false, nil }
