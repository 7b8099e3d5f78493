package trunk

import (
	"slices"

	"github.com/nyaruka/phonenumbers"

	"soniq/internal/identity/org"
)

// A Reason says why a call may not leave; "" is none.
type Reason string

// The reasons.
const (
	Allowed             Reason = ""
	OrgSuspended        Reason = "org_suspended"
	UserSuspended       Reason = "user_suspended"
	OutboundOff         Reason = "outbound_disabled"
	OutboundHalted      Reason = "outbound_halted" // for the whole installation
	NotAcknowledged     Reason = "emergency_not_acknowledged"
	NumberInvalid       Reason = "invalid_number"
	CountryClosed       Reason = "country_not_allowed"
	TypeBlocked         Reason = "number_type_blocked"
	TooFast             Reason = "calls_per_second"
	TooFastThere        Reason = "destination_calls_per_second"
	TooMany             Reason = "concurrent_calls"
	MinutesUsed         Reason = "minutes_per_day"
	NoTrunk             Reason = "no_trunk"
	TrunkFull           Reason = "trunk_full"
	EmergencyNotReached Reason = "emergency_not_available"
	EmergencyByProgram  Reason = "emergency_not_for_programs"
)

// order lists the reasons, for counters.
var order = [...]Reason{OrgSuspended, UserSuspended, OutboundOff, OutboundHalted, NotAcknowledged, NumberInvalid, CountryClosed, TypeBlocked, TooFast,
	TooFastThere, TooMany, MinutesUsed, NoTrunk, TrunkFull, EmergencyNotReached, EmergencyByProgram}

// A Policy is what decides over one organisation's outbound calls.
type Policy struct {
	Country        string // how national numbers are read
	Suspended      bool
	Unacknowledged bool // emergency calls are not possible, and nobody has said that they know
	Outbound       org.Outbound
}

// PolicyOf is the policy of an organisation.
func PolicyOf(o org.Organization) Policy {
	return Policy{Country: o.Country, Suspended: o.Status != org.Active, Outbound: o.Outbound,
		Unacknowledged: !o.Sandbox() && o.EmergencyCalling != "available" && o.Emergency.AcknowledgedAt.IsZero()}
}

// A Verdict is the gate's judgement of a number.
type Verdict struct {
	Reason  Reason
	Number  string // E.164
	Country string // ISO 3166; "001" for numbers of no country
	Type    string // one of org.NumberTypes
}

// Judge says whether a number may be dialled. Emergency numbers must have been recognised before. It costs some ten
// microseconds.
func (p Policy) Judge(dialled string) Verdict {
	switch {
	case p.Suspended:
		return Verdict{Reason: OrgSuspended}
	case !p.Outbound.Enabled:
		return Verdict{Reason: OutboundOff}
	}
	n, err := phonenumbers.Parse(bare(dialled), p.Country)
	if err != nil {
		return Verdict{Reason: NumberInvalid}
	}
	region := phonenumbers.GetRegionCodeForNumber(n)
	if !phonenumbers.IsValidNumberForRegion(n, region) {
		return Verdict{Reason: NumberInvalid}
	}
	v := Verdict{Number: phonenumbers.Format(n, phonenumbers.E164), Country: region, Type: TypeOf(n)}
	switch {
	case p.Unacknowledged:
		v.Reason = NotAcknowledged
	case !p.open(n, v.Country):
		v.Reason = CountryClosed
	case slices.Contains(p.Outbound.BlockedTypes, v.Type):
		v.Reason = TypeBlocked
	}
	return v
}

// open reports whether the number belongs to an allowed country. Countries that share a calling code, such as those
// behind +1, are told apart; a number valid in several of them, such as one that is free of charge, is of each.
func (p Policy) open(n *phonenumbers.PhoneNumber, region string) bool {
	return slices.ContainsFunc(p.Outbound.AllowedCountries, func(country string) bool {
		return country == region || phonenumbers.IsValidNumberForRegion(n, country)
	})
}

// satellites are calling codes of satellite networks and of networks of no country, which cost as much.
var satellites = []int32{870, 881, 882, 883}

// TypeOf names the type of a number as org.NumberTypes does.
func TypeOf(n *phonenumbers.PhoneNumber) string {
	if slices.Contains(satellites, n.GetCountryCode()) {
		return "satellite"
	}
	if name, ok := types[phonenumbers.GetNumberType(n)]; ok {
		return name
	}
	return "unknown"
}

var types = map[phonenumbers.PhoneNumberType]string{
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
