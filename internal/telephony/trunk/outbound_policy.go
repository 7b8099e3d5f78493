package trunk

import (
	"slices"
	"strings"

	"github.com/nyaruka/phonenumbers"

	"soniq/internal/identity/org"
	"soniq/internal/telephony/number"
	"soniq/internal/telephony/number/shortnumber"
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
	Number  string // E.164, or a short number of the organisation's country
	Country string // ISO 3166; "001" for numbers that belong to no country
	Type    string // one of org.NumberTypes
}

// EvaluateCall decides whether a number or a short number, such as 116117, may be dialled. Emergency numbers must be
// handled before, because it does not exempt them.
func (p Policy) EvaluateCall(dialled string) PolicyDecision {
	if s, ok := shortService(p.Country, dialled); ok {
		return p.evaluateService(s)
	}
	v := p.Evaluate(dialled)
	if v.Reason == InvalidNumber {
		if s, ok := shortServiceOutside(p.Country, dialled); ok {
			return p.evaluateService(s)
		}
	}
	return v
}

// shortService recognises a short number of the country in the dialled digits: alone, or after the country code.
func shortService(country, dialled string) (shortnumber.Service, bool) {
	digits := normalizeDialled(dialled)
	if rest, ok := strings.CutPrefix(digits, callingCode(country)); ok {
		digits = rest
	}
	return shortnumber.ServiceOf(country, digits)
}

// shortServiceOutside recognises a short number of the country after the digits for an outside line.
func shortServiceOutside(country, dialled string) (s shortnumber.Service, ok bool) {
	digits := normalizeDialled(dialled)
	for _, prefix := range outsideLinePrefixes {
		if rest, has := strings.CutPrefix(digits, prefix); has && !ok {
			s, ok = shortnumber.ServiceOf(country, rest)
		}
	}
	return s, ok
}

// IsShortNumber reports whether the dialled digits reach a service of the country that is no emergency service.
func IsShortNumber(country, dialled string) bool {
	_, ok := shortService(country, dialled)
	return ok
}

// evaluateService decides whether a short number of the own country may be dialled.
func (p Policy) evaluateService(s shortnumber.Service) PolicyDecision {
	if why := p.closed(); why != Allowed {
		return PolicyDecision{Reason: why}
	}
	allowed := slices.Contains(p.Outbound.AllowedCountries, p.Country)
	return p.decide(PolicyDecision{Number: s.Number, Country: p.Country, Type: s.Type}, allowed)
}

// closed returns the reason why no number may be dialled, or Allowed.
func (p Policy) closed() Reason {
	switch {
	case p.Suspended:
		return OrgSuspended
	case !p.Outbound.Enabled:
		return OutboundDisabled
	}
	return Allowed
}

// Evaluate decides whether a number with a form in E.164 may be dialled. Emergency numbers must be handled before, because it
// does not exempt them. It costs about ten microseconds.
func (p Policy) Evaluate(dialled string) PolicyDecision {
	if why := p.closed(); why != Allowed {
		return PolicyDecision{Reason: why}
	}
	n, err := number.ParseDialled(normalizeDialled(dialled), p.Country)
	if err != nil {
		return PolicyDecision{Reason: InvalidNumber}
	}
	e164 := phonenumbers.Format(n, phonenumbers.E164)
	if former, ok := number.FormerSpelling(n); ok {
		e164 = former
	}
	n = validSpelling(n, e164)
	region := phonenumbers.GetRegionCodeForNumber(n)
	if !phonenumbers.IsValidNumberForRegion(n, region) {
		return PolicyDecision{Reason: InvalidNumber}
	}
	v := PolicyDecision{Number: e164, Country: region, Type: TypeOf(n)}
	return p.decide(v, p.countryAllowed(n, v.Country))
}

// validSpelling returns a number, or the first of its spellings that is valid. The call keeps the spelling that was dialled,
// because an answer goes to the number that the call or message came from.
func validSpelling(n *phonenumbers.PhoneNumber, e164 string) *phonenumbers.PhoneNumber {
	if phonenumbers.IsValidNumber(n) {
		return n
	}
	for _, spelling := range number.AllSpellings([]string{e164}) {
		if o, err := phonenumbers.Parse(spelling, ""); err == nil && phonenumbers.IsValidNumber(o) {
			return o
		}
	}
	return n
}

// decide sets the reason for which a known number must not be dialled.
func (p Policy) decide(v PolicyDecision, countryAllowed bool) PolicyDecision {
	switch {
	case p.EmergencyUnacknowledged:
		v.Reason = EmergencyNotAcknowledged
	case !countryAllowed:
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
