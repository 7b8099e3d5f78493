package trunk

import (
	"slices"

	"github.com/nyaruka/phonenumbers"

	"soniq/internal/identity/org"
)

// Reason is the code of a refusal; "" means that the call is allowed.
type Reason string

// The reasons. Their values are published in errors, metrics and logs.
const (
	Allowed                  Reason = ""
	OrgSuspended             Reason = "org_suspended"
	UserSuspended            Reason = "user_suspended"
	OutboundDisabled         Reason = "outbound_disabled"
	OutboundStopped          Reason = "outbound_halted" // for the whole installation
	EmergencyNotAcknowledged Reason = "emergency_not_acknowledged"
	InvalidNumber            Reason = "invalid_number"
	CountryNotAllowed        Reason = "country_not_allowed"
	NumberTypeBlocked        Reason = "number_type_blocked"
	CallsPerSecondExceeded   Reason = "calls_per_second"
	DestinationRateExceeded  Reason = "destination_calls_per_second"
	ConcurrentCallsExceeded  Reason = "concurrent_calls"
	DailyMinutesExceeded     Reason = "minutes_per_day"
	NoTrunk                  Reason = "no_trunk"
	TrunkFull                Reason = "trunk_full"
	EmergencyUnavailable     Reason = "emergency_not_available"
	EmergencyNotForPrograms  Reason = "emergency_not_for_programs"
)

// countedReasons lists the reasons in the order of the refusal counters.
var countedReasons = [...]Reason{OrgSuspended, UserSuspended, OutboundDisabled, OutboundStopped, EmergencyNotAcknowledged, InvalidNumber,
	CountryNotAllowed, NumberTypeBlocked, CallsPerSecondExceeded,
	DestinationRateExceeded, ConcurrentCallsExceeded, DailyMinutesExceeded, NoTrunk, TrunkFull, EmergencyUnavailable,
	EmergencyNotForPrograms}

// Policy holds the settings of an organisation that decide whether an outbound call is allowed.
type Policy struct {
	Country                 string // ISO 3166; national numbers are parsed as numbers of this country
	Suspended               bool
	EmergencyUnacknowledged bool // emergency calls are not available, and no administrator has acknowledged it
	Outbound                org.Outbound
}

// PolicyOf returns the policy of an organisation.
func PolicyOf(o org.Organization) Policy {
	return Policy{Country: o.Country, Suspended: o.Status != org.Active, Outbound: o.Outbound,
		EmergencyUnacknowledged: !o.Sandbox() && o.EmergencyCalling != "available" && o.Emergency.AcknowledgedAt.IsZero()}
}

// PolicyDecision is the result of Policy.Evaluate for a number.
type PolicyDecision struct {
	Reason  Reason
	Number  string // E.164
	Country string // ISO 3166; "001" for numbers that belong to no country
	Type    string // one of org.NumberTypes
}

// Evaluate decides whether a number may be dialled. Emergency numbers must be handled before, because it does not
// exempt them. It costs about ten microseconds.
func (p Policy) Evaluate(dialled string) PolicyDecision {
	switch {
	case p.Suspended:
		return PolicyDecision{Reason: OrgSuspended}
	case !p.Outbound.Enabled:
		return PolicyDecision{Reason: OutboundDisabled}
	}
	n, err := phonenumbers.Parse(normalizeDialled(dialled), p.Country)
	if err != nil {
		return PolicyDecision{Reason: InvalidNumber}
	}
	region := phonenumbers.GetRegionCodeForNumber(n)
	if !phonenumbers.IsValidNumberForRegion(n, region) {
		return PolicyDecision{Reason: InvalidNumber}
	}
	v := PolicyDecision{Number: phonenumbers.Format(n, phonenumbers.E164), Country: region, Type: TypeOf(n)}
	switch {
	case p.EmergencyUnacknowledged:
		v.Reason = EmergencyNotAcknowledged
	case !p.countryAllowed(n, v.Country):
		v.Reason = CountryNotAllowed
	case slices.Contains(p.Outbound.BlockedTypes, v.Type):
		v.Reason = NumberTypeBlocked
	}
	return v
}

// countryAllowed reports whether the number belongs to an allowed country. Countries that share a calling code, such
// as those of +1, are distinguished. A number that is valid in several of them, such as a toll-free one, belongs to
// each.
func (p Policy) countryAllowed(n *phonenumbers.PhoneNumber, region string) bool {
	return slices.ContainsFunc(p.Outbound.AllowedCountries, func(country string) bool {
		return country == region || phonenumbers.IsValidNumberForRegion(n, country)
	})
}

// satellites are calling codes of satellite networks, and of networks that belong to no country and cost as much.
var satellites = []int32{870, 881, 882, 883}

// TypeOf returns the type of a number, as named in org.NumberTypes.
func TypeOf(n *phonenumbers.PhoneNumber) string {
	if slices.Contains(satellites, n.GetCountryCode()) {
		return "satellite"
	}
	if name, ok := numberTypes[phonenumbers.GetNumberType(n)]; ok {
		return name
	}
	return "unknown"
}

var numberTypes = map[phonenumbers.PhoneNumberType]string{
	phonenumbers.FIXED_LINE:           "fixed_line",
	phonenumbers.FIXED_LINE_OR_MOBILE: "fixed_line",
	phonenumbers.MOBILE:               "mobile",
	phonenumbers.TOLL_FREE:            "toll_free",
	phonenumbers.PREMIUM_RATE:         "premium_rate",
	phonenumbers.SHARED_COST:          "shared_cost",
	phonenumbers.VOIP:                 "voip",
	phonenumbers.PERSONAL_NUMBER:      "personal_number",
	phonenumbers.PAGER:                "pager",
	phonenumbers.UAN:                  "uan",
	phonenumbers.VOICEMAIL:            "voicemail",
}
