package server

import (
	"context"
	"errors"
	"strings"

	"soniq/internal/identity/org"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/sandbox/testparty"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/number"
	"soniq/internal/telephony/trunk"
)

// Destinations in requests: parsing, and the checks that are possible before the call.

// parseDestination parses a number, an extension (ext:100) or a sip: address of this server. It returns E.164, or ext:
// with the extension. Errors are about the member "to". It already checks whether the number may be called, so that
// no phone rings for a call that cannot be placed. The outbound gate checks again, and counts.
func (p *Platform) parseDestination(ctx context.Context, orgID, to string) (string, error) {
	if extension, ok := strings.CutPrefix(to, "ext:"); ok {
		return p.extension(ctx, orgID, written(extension))
	}
	text, err := p.userPart(to)
	if err != nil {
		return "", err
	}
	text = written(text)
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

// written returns a number as it was written, without what does not belong to it.
func written(text string) string { return number.Written(text) }

// userPart returns the user part of a sip: or sips: address of this server, or of a tel: address. It returns other
// texts unchanged, and an error for addresses of other servers.
func (p *Platform) userPart(to string) (string, error) {
	scheme, _, found := strings.Cut(to, ":")
	switch strings.ToLower(scheme) {
	case "sip", "sips", "tel":
	default:
		return to, nil
	}
	u, err := sipmsg.ParseURI(to)
	switch {
	case err != nil || !found || u.User == "":
		return "", op.Invalid(op.Field("to", "invalid_address", "not a valid SIP address"))
	case u.Scheme != "tel" && !p.owns(u):
		e := op.Fail("destination_not_allowed", foreignHostError(u))
		e.Extra = map[string]any{"reason": "foreign_host"}
		return "", e
	}
	return u.User, nil
}

// foreignHostError returns the error text for a SIP address of another server.
func foreignHostError(u sipmsg.URI) string {
	return "SIP addresses of other servers are not called: " + u.Host + " is not this server"
}

// extension checks that an extension exists, and returns it with the prefix ext:.
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

// parseNumber parses a number in the country of an organisation.
func (p *Platform) parseNumber(ctx context.Context, orgID, text string) (string, bool, error) {
	o, err := p.orgs.Get(ctx, orgID)
	if err != nil {
		return "", false, err
	}
	number, ok := number.Parse(text, o.Country)
	return number, ok, nil
}

// webhookNumbers implements webhook.Numbers.
type webhookNumbers struct{ p *Platform }

// NumberID returns the id of a number of the organisation, or "" if the organisation does not own it.
func (n webhookNumbers) NumberID(ctx context.Context, q db.Querier, org, e164 string) (string, error) {
	owned, err := n.p.numbers.Owned(ctx, q, org, e164)
	if db.IsNone(err) {
		return "", nil
	}
	return owned.ID, err
}

// webhookDeliveries returns the webhook deliveries of a call as timeline entries.
func (p *Platform) webhookDeliveries(ctx context.Context, org, callID string) ([]call.TimelineEntry, error) {
	attempts, err := p.webhooks.CallAttempts(ctx, org, callID)
	all := make([]call.TimelineEntry, len(attempts))
	for i, x := range attempts {
		all[i] = call.TimelineEntry{At: x.At.Time, Kind: "webhook." + x.Kind, Detail: map[string]any{"webhook_id": x.WebhookID,
			"delivery_id": x.DeliveryID,
			"event_id":    x.EventID, "attempt": x.Attempt, "duration_ms": x.DurationMS, "response_status": x.ResponseStatus,
			"error": x.Error}}
	}
	return all, err
}
