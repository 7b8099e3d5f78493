package trunk

import (
	"context"
	"fmt"
	"time"

	"soniq/internal/platform/op"
)

// Plan describes how an outbound call is placed. It does not count the call: the caller uses Limiter.Begin for that,
// or Limiter.BeginUnlimited for an emergency call, when the call is made.
type Plan struct {
	Emergency bool
	Test      bool   // test call to the service that only reads back the caller's number and location
	Number    string // E.164, the emergency number, or a short number of the country
	Country   string
	Type      string
	Routes    []Route // in the order in which they are tried; at least one
	Limit     Limit   // of the organisation
}

// Refusal is the error for a call that is not placed.
type Refusal struct {
	Reason  Reason
	Dialled string
	Country string
	Type    string
}

// Plan returns the trunks for a dialled number. Emergency numbers are recognised before every limit, also for a
// suspended organisation. If the call must not be placed, the error is a *Refusal. It costs a few map look-ups and
// about ten microseconds of parsing.
func (s *Service) Plan(ctx context.Context, orgID, dialled string) (Plan, error) {
	o, err := s.orgs.Get(ctx, orgID)
	if err != nil {
		return Plan{}, fmt.Errorf("find organisation: %w", err)
	}
	if number, ok := EmergencyNumber(o.Country, dialled); ok {
		return s.planEmergency(ctx, orgID, Plan{Number: number, Country: o.Country})
	}
	if EmergencyTest(o.Country, dialled) {
		return s.planEmergency(ctx, orgID, Plan{Number: emergencyTestNumber, Country: o.Country, Test: true})
	}
	policy := PolicyOf(o)
	v := policy.EvaluateCall(dialled)
	if v.Reason != Allowed {
		return Plan{Number: v.Number, Country: v.Country, Type: v.Type}, &Refusal{v.Reason, dialled, v.Country, v.Type}
	}
	ways, err := s.Routes(ctx, orgID, v.Number, v.Country)
	if err != nil {
		return Plan{}, err
	}
	if len(ways) == 0 {
		return Plan{Number: v.Number, Country: v.Country, Type: v.Type}, &Refusal{NoTrunk, dialled, v.Country, v.Type}
	}
	limit := policy.CallLimit()
	limit.Zone = s.timezone(o.Timezone)
	return Plan{Number: v.Number, Country: v.Country, Type: v.Type, Routes: ways, Limit: limit}, nil
}

// EmergencyPlan returns the plan for an emergency number without the database; ok is false for another number. routes
// are the trunks last known.
func EmergencyPlan(country, dialled string, routes []Route) (p Plan, ok bool) {
	p = Plan{Emergency: true, Country: country, Type: "emergency"}
	if p.Number, ok = EmergencyNumber(country, dialled); !ok {
		if p.Test = EmergencyTest(country, dialled); !p.Test {
			return Plan{}, false
		}
		p.Number = emergencyTestNumber
	}
	for _, r := range routes {
		p.Routes = append(p.Routes, Route{r.Trunk, p.Number})
	}
	return p, true
}

func (s *Service) planEmergency(ctx context.Context, orgID string, p Plan) (Plan, error) {
	p.Emergency, p.Type = true, "emergency"
	var err error
	if p.Routes, err = s.EmergencyRoutes(ctx, orgID, p.Number); err != nil {
		return Plan{}, err
	}
	if len(p.Routes) == 0 {
		return Plan{}, &Refusal{EmergencyUnavailable, p.Number, p.Country, p.Type}
	}
	return p, nil
}

// timezone returns a time zone by name, loaded once; UTC if the name is unknown.
func (s *Service) timezone(name string) *time.Location {
	if z, ok := s.timezones.Load(name); ok {
		return z.(*time.Location)
	}
	z, err := time.LoadLocation(name)
	if err != nil {
		z = time.UTC
	}
	s.timezones.Store(name, z)
	return z
}

// refusals has the SIP status, error code and text for each reason. A refused emergency call is 503, because a phone
// with another line or network then tries it (RFC 3261 §21.5.4). With 603 or 604 the phone would give up.
var refusals = map[Reason]struct {
	status int // SIP
	code   string
	words  string
}{
	OrgSuspended:     {403, "org_suspended", "The organisation is suspended"},
	UserSuspended:    {403, "org_suspended", "The user is suspended"},
	OutboundDisabled: {403, "destination_not_allowed", "Outbound calls are switched off"},
	OutboundStopped: {403, "destination_not_allowed",
		"Outbound calls of the whole installation are stopped by its operator, or until a restored copy is confirmed"},
	EmergencyNotAcknowledged: {403, "destination_not_allowed",
		"Emergency calls are not available here; an administrator has to acknowledge that before other calls go out"},
	InvalidNumber:           {404, "validation_failed", "Not a valid number"},
	CountryNotAllowed:       {403, "destination_not_allowed", "Calls to this country are not allowed"},
	NumberTypeBlocked:       {403, "destination_not_allowed", "Calls to this type of number are not allowed"},
	CallsPerSecondExceeded:  {503, "rate_limited", "Too many calls at once"},
	DestinationRateExceeded: {503, "rate_limited", "Too many calls to this number at once"},
	ConcurrentCallsExceeded: {503, "concurrency_limit", "Too many calls in progress"},
	DailyMinutesExceeded:    {403, "plan_limit", "The minutes of this day are used up"},
	NoTrunk:                 {503, "destination_not_allowed", "No trunk takes this number"},
	TrunkFull:               {503, "concurrency_limit", "All lines are busy"},
	EmergencyUnavailable:    {503, "destination_not_allowed", "Emergency calls are not available from this phone - use a mobile phone"},
	EmergencyNotForPrograms: {403, "destination_not_allowed", "Programs and AI agents may not call emergency numbers; a person has to"},
}

// Error returns the text for users.
func (r *Refusal) Error() string {
	words := refusals[r.Reason].words
	switch r.Reason {
	case CountryNotAllowed:
		return words + ": " + r.Country
	case NumberTypeBlocked:
		return words + ": " + r.Type
	}
	return words
}

// SIPResponse returns the final SIP response to a phone.
func (r *Refusal) SIPResponse() (status int, phrase string) {
	return refusals[r.Reason].status, refusals[r.Reason].words
}

// APIError returns the error for an API client. field is the member of the request that held the number.
func (r *Refusal) APIError(field string) *op.Error {
	if r.Reason == InvalidNumber {
		return op.Invalid(op.Field(field, "invalid_e164", "not a valid number"))
	}
	e := op.Fail(refusals[r.Reason].code, r.Error())
	e.Extra = map[string]any{"reason": r.Reason}
	return e
}
