package org

import "soniq/internal/platform/op"

// Law is what the law of a country asks for before a party of a call records it.
type Law string

// Kinds of law, from the mildest.
const (
	OneParty     Law = "one_party"    // one party may record without telling the others
	Announcement Law = "announcement" // the others must be told before
	AllParty     Law = "all_party"    // every party must consent
)

// countryLaw is the law of one country and where it is written.
type countryLaw struct {
	law    Law
	source string
}

// recordingLaws has the law by country (ISO 3166). It is no legal advice: laws of states and of trades can ask for more.
var recordingLaws = map[string]countryLaw{
	"AT": {AllParty, "StGB § 120; ABGB § 16"},
	"AU": {Announcement, "Telecommunications (Interception and Access) Act 1979, ss. 6 and 7"},
	"BE": {AllParty, "Act of 13 June 2005 on electronic communications, arts. 124 and 125"},
	"BR": {Announcement, "LGPD (Law 13.709/2018), art. 9"},
	"CA": {Announcement, "Criminal Code s. 184(2)(a); PIPEDA Schedule 1, cl. 4.3"},
	"CH": {AllParty, "StGB Art. 179ter"},
	"CZ": {AllParty, "Civil Code (89/2012) §§ 86 to 88"},
	"DE": {AllParty, "StGB § 201"},
	"DK": {AllParty, "Straffeloven § 263; decision of Datatilsynet of 11 April 2019 (TDC)"},
	"ES": {Announcement, "GDPR Art. 13; Constitutional Court 114/1984"},
	"FI": {Announcement, "GDPR Art. 13; Criminal Code ch. 24 s. 5"},
	"FR": {AllParty, "Code pénal art. 226-1"},
	"GB": {Announcement, "Interception by Businesses Regulations 2018 (SI 2018/356); UK GDPR Art. 13"},
	"GR": {AllParty, "Penal Code art. 370A"},
	"HR": {AllParty, "Criminal Code art. 143"},
	"HU": {AllParty, "Civil Code (Act V of 2013) § 2:48"},
	"IE": {Announcement, "GDPR Art. 13; Postal and Telecommunications Services Act 1983 s. 98"},
	"IT": {Announcement, "GDPR Art. 13; Codice penale art. 617"},
	"LU": {AllParty, "Act of 30 May 2005, art. 4"},
	"NL": {Announcement, "GDPR Art. 13; Wetboek van Strafrecht art. 139c"},
	"NO": {Announcement, "GDPR Art. 13; Straffeloven § 205"},
	"NZ": {Announcement, "Crimes Act 1961 s. 216B; Privacy Act 2020, principle 3"},
	"PL": {Announcement, "GDPR Art. 13; Kodeks karny art. 267"},
	"PT": {AllParty, "Código Penal art. 199"},
	"SE": {Announcement, "GDPR Art. 13; Brottsbalken ch. 4 s. 9 a"},
	"SG": {Announcement, "Personal Data Protection Act 2012 s. 20"},
	"SI": {AllParty, "Criminal Code (KZ-1) art. 137"},
	"SK": {AllParty, "Civil Code (40/1964) § 12"},
	"US": {OneParty, "18 U.S.C. § 2511(2)(d); some states demand the consent of all, such as California (Penal Code § 632)"},
	"ZA": {Announcement, "RICA (Act 70 of 2002) s. 4; POPIA s. 18"},
}

// RecordingLaw returns the law of a country and its source. A country that is not in the table counts as all_party.
func RecordingLaw(country string) (law Law, source string) {
	if l, ok := recordingLaws[country]; ok {
		return l.law, l.source
	}
	return AllParty, "not in the table of this version: counted as the strictest"
}

// newRecordingSettings returns the settings stored with a new organisation. mode is its choice; empty: none. If
// the law asks for consent, nothing is recorded without a choice. If it asks for more than one party's knowledge,
// recordings are announced.
func newRecordingSettings(country, mode string) map[string]any {
	law, _ := RecordingLaw(country)
	chosen := map[string]any{}
	if mode == "" && law == AllParty {
		mode = "off"
	}
	if mode != "" {
		chosen["mode"] = mode
	}
	if law != OneParty {
		chosen["announce"] = true
	}
	if len(chosen) == 0 {
		return nil
	}
	return map[string]any{"recording": chosen}
}

// silent reports whether calls are recorded without a notice.
func (r Recording) silent() bool { return r.Mode == "on" && !r.Announce && r.Consent == "none" }

// againstLaw reports whether calls are recorded without a notice that the law asks for, and nobody has answered for it.
func (r Recording) againstLaw() bool {
	return r.silent() && r.Law != OneParty && r.SilentAcknowledgedAt.IsZero()
}

// NoticeRequired reports whether no recording may begin without a notice. Organisations that recorded silently before
// this rule existed keep doing so; the API and soniq doctor warn about them.
func (r Recording) NoticeRequired() bool {
	return r.Consent == "notice" || r.Law != OneParty && r.SilentAcknowledgedAt.IsZero() && !r.silent()
}

// Announced reports whether a notice is played before a recording.
func (r Recording) Announced() bool { return r.Announce || r.NoticeRequired() }

// ByPolicy reports whether calls are recorded without a request. With opt_in somebody must start each recording.
func (r Recording) ByPolicy() bool { return r.Mode == "on" && r.Consent != "opt_in" }

// withLaw sets the members that follow from the country.
func (r Recording) withLaw(country string) Recording {
	r.Law, r.LawSource = RecordingLaw(country)
	r.Warning = nil
	if r.againstLaw() {
		text := "calls are recorded without a notice, but the law of " + country + " asks for more (" + r.LawSource +
			"): set recording.announce to true, or acknowledge it with recording.silent_acknowledged"
		r.Warning = &text
	}
	return r
}

// checkRecordingLaw refuses a change by which calls would be recorded against the law of the country.
func checkRecordingLaw(before, after Organization) []op.Violation {
	if !after.Recording.againstLaw() || before.Recording.againstLaw() && before.Country == after.Country {
		return nil
	}
	return []op.Violation{op.Field("recording.announce", "announcement_required", *after.Recording.Warning)}
}
