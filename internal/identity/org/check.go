package org

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // time zones for systems without a zone database
	"unicode"

	"golang.org/x/text/language"

	"soniq/internal/platform/op"
	"soniq/internal/platform/redact"
)

// checker collects violations.
type checker []op.Violation

func (c *checker) want(ok bool, field, code, message string) {
	if !ok {
		*c = append(*c, op.Field(field, code, message))
	}
}

var headerPrefix = regexp.MustCompile(`^[a-z][a-z0-9-]{0,30}[a-z0-9]$`)

// standardPrefix is the prefix of the headers of Standard Webhooks, which every delivery has too.
const standardPrefix = "webhook"

// check lists every violation of an organisation in the form that would be stored.
func (o Organization) check() []op.Violation {
	var c checker
	name := strings.TrimSpace(o.Name)
	c.want(name != "" && len([]rune(name)) <= 120, "name", "invalid_length", "must have 1 to 120 characters")
	_, known := Country(o.Country)
	c.want(known, "country", "invalid_country", ErrCountry.Error())
	c.want(isValidZone(o.Timezone), "timezone", "invalid_timezone", "must be an IANA name such as Europe/London")
	_, err := language.Parse(o.Language)
	c.want(err == nil, "language", "invalid_language", "must be a language tag such as en or de-CH")
	c.want(o.Brand == nil || len(*o.Brand) <= 120, "brand", "invalid_length", "must have at most 120 characters")
	c.want(o.WebhookHeaderPrefix == nil || headerPrefix.MatchString(*o.WebhookHeaderPrefix), "webhook_header_prefix",
		"invalid_header", "must be lower-case letters, digits and hyphens, such as x-service")
	c.want(o.WebhookHeaderPrefix == nil || *o.WebhookHeaderPrefix != standardPrefix, "webhook_header_prefix", "invalid_header",
		"webhook is the prefix of Standard Webhooks; choose another, such as x-service")
	c.recording(o.Recording)
	c.transcripts(o.Transcripts)
	c.redaction(o.Redaction)
	c.outbound(o.Outbound, o.Country)
	c.want(o.Emergency.DefaultAddress == nil || len([]rune(*o.Emergency.DefaultAddress)) <= 500, "emergency.default_address",
		"invalid_length", "must have at most 500 characters")
	if o.Emergency.Location != nil {
		c = append(c, o.Emergency.Location.Check("emergency.location")...)
	}
	return c
}

const maxNoticeLength = 300 // characters

func (c *checker) recording(r Recording) {
	c.want(slices.Contains([]string{"on", "off", "per_queue"}, r.Mode), "recording.mode", "invalid_value", "must be on, off or per_queue")
	c.want(slices.Contains([]string{"none", "notice", "opt_in"}, r.Consent), "recording.consent", "invalid_value",
		"must be none, notice or opt_in")
	c.want(r.AnnounceText == nil || isSpeakable(*r.AnnounceText, maxNoticeLength), "recording.announce_text", "invalid_value",
		"must have 1 to 300 characters on one line")
	c.days("recording.retention_days", r.RetentionDays)
}

func (c *checker) transcripts(t Transcripts) {
	c.days("transcripts.retention_days", t.RetentionDays)
	for _, l := range t.Languages {
		_, err := language.Parse(l)
		c.want(err == nil, "transcripts.languages", "invalid_language", l+" is not a language tag")
	}
	c.want(len(t.Vocabulary) <= maxTerms, "transcripts.vocabulary", "invalid_length", fmt.Sprintf("must have at most %d terms", maxTerms))
	for _, x := range t.Vocabulary {
		c.term(x)
	}
}

func (c *checker) redaction(r Redaction) {
	for _, k := range r.Kinds {
		c.want(slices.Contains(redact.Kinds, k), "redaction.kinds", "invalid_value", fmt.Sprintf("%q is not one of %v", k, redact.Kinds))
	}
}

// Limits of the vocabulary. Names that are added automatically must also fit into transcript.MaxTerms.
const (
	maxTerms       = 300
	maxTermLength  = 60 // characters
	maxSoundsLike  = 5
	maxSoundLength = 120 // characters
	vocabularyPath = "transcripts.vocabulary"
)

func (c *checker) term(t Term) {
	c.want(isSpeakable(t.Term, maxTermLength), vocabularyPath, "invalid_value",
		fmt.Sprintf("%q must have 1 to %d characters on one line, a letter or a digit among them", truncateTerm(t.Term), maxTermLength))
	c.want(len(t.SoundsLike) <= maxSoundsLike, vocabularyPath, "invalid_length", fmt.Sprintf("%q must sound like at most %d others",
		truncateTerm(t.Term), maxSoundsLike))
	for _, like := range t.SoundsLike {
		c.want(isSpeakable(like, maxSoundLength), vocabularyPath, "invalid_value",
			fmt.Sprintf("what %q sounds like must have 1 to %d characters on one line, a letter or a digit among them",
				truncateTerm(t.Term), maxSoundLength))
	}
}

// isSpeakable reports whether a text contains a letter or a digit, no control characters, and at most the given
// number of characters.
func isSpeakable(text string, most int) bool {
	letter := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	return len([]rune(text)) <= most && strings.ContainsFunc(text, letter) && !strings.ContainsFunc(text, unicode.IsControl)
}

func truncateTerm(text string) string {
	if r := []rune(text); len(r) > maxTermLength {
		return string(r[:maxTermLength]) + "…"
	}
	return text
}

func (c *checker) days(field string, n int) {
	c.want(n >= 1 && n <= 3650, field, "out_of_range", "must be 1 to 3650 days")
}

func (c *checker) outbound(o Outbound, own string) {
	for _, country := range o.AllowedCountries {
		known, ok := Country(country)
		// an invalid own country is reported once, under country
		c.want(ok && known == country || country == own, "outbound.allowed_countries", "invalid_country", country+" is "+ErrCountry.Error())
	}
	for _, t := range o.BlockedTypes {
		c.want(slices.Contains(NumberTypes, t), "outbound.blocked_types", "invalid_value", t+" is not one of "+strings.Join(NumberTypes,
			", "))
	}
	c.want(o.CallsPerSecond >= 1 && o.CallsPerSecond <= 10_000, "outbound.calls_per_second", "out_of_range", "must be 1 to 10000")
	c.want(o.ConcurrentCalls >= 1 && o.ConcurrentCalls <= 100_000, "outbound.concurrent_calls", "out_of_range", "must be 1 to 100000")
	c.want(o.MinutesPerDay >= 0, "outbound.minutes_per_day", "out_of_range", "must be 0 (no limit) or more")
}

// isValidZone reports whether a time zone can be loaded. "Local" is refused, because it would be the zone of the
// server.
func isValidZone(name string) bool {
	if name == "" || name == "Local" {
		return false
	}
	_, err := time.LoadLocation(name)
	return err == nil
}
