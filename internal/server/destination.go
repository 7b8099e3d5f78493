package server

import (
	"context"
	"errors"
	"strings"

	"soniq/internal/identity/org"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/protocol/sip"
	"soniq/internal/sandbox/testparty"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/number"
	"soniq/internal/telephony/trunk"
)

// This file reads the destinations that requests name.

// destination reads a number, an extension (ext:100) or a sip: address at this server as a request names it, and returns what the
// switch is given: E.164 or ext: with the extension. What is wrong is told of the member "to". Whether a number may be called is asked
// here already, so that nobody's phone rings for a call that cannot be placed; the outbound gate asks again, and counts.
func (p *Platform) destination(ctx context.Context, orgID, to string) (string, error) {
	if extension, ok := strings.CutPrefix(to, "ext:"); ok {
		return p.extension(ctx, orgID, extension)
	}
	text, err := p.userOf(to)
	if err != nil {
		return "", err
	}
	if len(text) <= 6 && !strings.HasPrefix(text, "+") {
		if dial, err := p.extension(ctx, orgID, text); err == nil {
			return dial, nil
		}
	}
	o, err := p.orgs.Get(ctx, orgID)
	if err != nil {
		return "", err
	}
	if e164, ok := testparty.CalleeNumber(text, o.Country); ok && o.Sandbox() {
		return e164, nil
	}
	plan, err := p.trunks.Plan(ctx, orgID, text)
	var refused *trunk.Refusal
	switch {
	case errors.As(err, &refused):
		return "", refused.APIError("to")
	case err != nil:
		return "", err
	case plan.Emergency:
		return "", (&trunk.Refusal{Reason: trunk.EmergencyNotForPrograms}).APIError("to")
	}
	return plan.Number, nil
}

// userOf is the user part of a sip: or sips: address at this server, or of a tel: address; any other text is given back. Who has the
// same name elsewhere is none of ours.
func (p *Platform) userOf(to string) (string, error) {
	scheme, _, found := strings.Cut(to, ":")
	switch strings.ToLower(scheme) {
	case "sip", "sips", "tel":
	default:
		return to, nil
	}
	u, err := sip.ParseURI(to)
	switch {
	case err != nil || !found || u.User == "":
		return "", op.Invalid(op.Field("to", "invalid_address", "not a valid SIP address"))
	case u.Scheme != "tel" && !p.owns(u):
		e := op.Fail("destination_not_allowed", notOurs(u))
		e.Extra = map[string]any{"reason": "foreign_host"}
		return "", e
	}
	return u.User, nil
}

// notOurs says why a SIP address elsewhere is not called.
func notOurs(u sip.URI) string {
	return "SIP addresses of other servers are not called: " + u.Host + " is not this server"
}

// extension finds the user who has an extension.
func (p *Platform) extension(ctx context.Context, orgID, extension string) (string, error) {
	o, err := p.orgs.Get(ctx, orgID)
	if err != nil {
		return "", err
	}
	if trunk.ReservedExtension(o.Country, extension) {
		return "", (&trunk.Refusal{Reason: trunk.EmergencyNotForPrograms}).APIError("to")
	}
	_, err = org.ExtensionOwner(ctx, p.db.Read(ctx), orgID, extension)
	if db.IsNone(err) {
		return "", op.Invalid(op.Field("to", "not_found", "nobody has this extension"))
	}
	return "ext:" + extension, err
}

// e164 reads a number in the country of an organisation.
func (p *Platform) e164(ctx context.Context, orgID, text string) (string, bool, error) {
	o, err := p.orgs.Get(ctx, orgID)
	if err != nil {
		return "", false, err
	}
	number, ok := number.Parse(text, o.Country)
	return number, ok, nil
}

// numberID is the id of an organisation's number, "" where it has none.
func (p *Platform) numberID(ctx context.Context, q db.Querier, org, e164 string) (string, error) {
	n, err := p.numbers.Owned(ctx, q, org, e164)
	if db.IsNone(err) {
		return "", nil
	}
	return n.ID, err
}

// hookSteps are the attempts to tell webhooks of a call, as steps of it.
func (p *Platform) hookSteps(ctx context.Context, org, callID string) ([]call.TimelineEntry, error) {
	attempts, err := p.hooks.Steps(ctx, org, callID)
	all := make([]call.TimelineEntry, len(attempts))
	for i, x := range attempts {
		all[i] = call.TimelineEntry{At: x.At.Time, Kind: "webhook." + x.Kind, Detail: map[string]any{"webhook_id": x.WebhookID, "delivery_id": x.DeliveryID,
			"event_id": x.EventID, "attempt": x.Attempt, "duration_ms": x.DurationMS, "response_status": x.ResponseStatus, "error": x.Error}}
	}
	return all, err
}
