package user

import (
	"context"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/language"

	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

var extensionForm = regexp.MustCompile(`^[0-9]{2,6}$`)

// Limits of the time after which an unanswered call goes elsewhere, in seconds.
const (
	minNoAnswer = 5
	maxNoAnswer = 120
)

// check returns an error that lists every violation of a user in the form that would be stored.
func (s *Service) check(ctx context.Context, q db.Querier, u User, country string, queues []string) error {
	wrong := u.violations()
	bad := func(field, code, message string) { wrong = append(wrong, op.Field(field, code, message)) }
	// An extension from before its number was reserved stays, so that the user can still be changed.
	if e := u.extension(); e != "" && e != u.oldExtension && s.config.Extensions.ReservedExtension(country, e) {
		bad("extension", "reserved", e+" reaches an emergency service or a crisis line")
	}
	if u.OutboundNumberID != nil {
		if ok, err := ownsNumber(ctx, q, u.OrgID, *u.OutboundNumberID); err != nil {
			return wrapError(err, "find outbound number")
		} else if !ok {
			bad("outbound_number_id", "not_found", "no such number")
		}
	}
	missing := queues
	if len(queues) > 0 {
		var err error
		if missing, err = s.config.Queues.Missing(ctx, q, u.OrgID, queues); err != nil {
			return wrapError(err, "find queues")
		}
	}
	unreachable, err := s.forwardViolations(ctx, u)
	if err != nil {
		return wrapError(err, "check forward destinations")
	}
	greeting, err := s.greetingViolations(ctx, q, u)
	if err != nil {
		return err
	}
	wrong = append(append(wrong, unreachable...), greeting...)
	for _, id := range missing {
		bad("queue_ids", "not_found", "no such queue: "+id)
	}
	if len(wrong) > 0 {
		return op.Invalid(wrong...)
	}
	return nil
}

// greetingViolations checks a greeting that a change sets. An unchanged one is not checked.
func (s *Service) greetingViolations(ctx context.Context, q db.Querier, u User) ([]op.Violation, error) {
	id := u.Voicemail.GreetingAudioID
	if id == nil || u.oldGreeting != nil && *u.oldGreeting == *id {
		return nil, nil
	}
	known, err := ownsAudio(ctx, q, u.OrgID, *id)
	if err != nil || known {
		return nil, wrapError(err, "find greeting")
	}
	return []op.Violation{op.Field("voicemail.greeting_audio_id", "not_found", "no such audio")}, nil
}

// forwardViolations checks the forward destinations that a change sets. Unchanged destinations are not checked,
// because they may have been removed since.
func (s *Service) forwardViolations(ctx context.Context, u User) (wrong []op.Violation, err error) {
	was := u.oldForward.byName()
	for name, to := range u.Forward.byName() {
		old := was[name]
		if to == nil || len(*to) > 120 || old != nil && *old == *to {
			continue
		}
		fault, err := s.config.Destinations.CheckForward(ctx, u.OrgID, *to)
		if err != nil {
			return nil, err
		}
		if fault != "" {
			wrong = append(wrong, op.Field("forward."+name, "invalid_destination", fault))
		}
	}
	return wrong, nil
}

func (u User) violations() []op.Violation {
	var wrong []op.Violation
	want := func(ok bool, field, code, message string) {
		if !ok {
			wrong = append(wrong, op.Field(field, code, message))
		}
	}
	want(IsAddress(u.Email), "email", "invalid_email", "must be an e-mail address")
	want(strings.TrimSpace(u.FirstName) != "" && len([]rune(u.FirstName)) <= 120, "first_name", "invalid_length",
		"must have 1 to 120 characters")
	want(len([]rune(u.LastName)) <= 120, "last_name", "invalid_length", "must have at most 120 characters")
	want(slices.Contains(Roles, u.Role), "role", "invalid_value", "must be one of "+strings.Join(Roles, ", "))
	want(u.Extension == nil || extensionForm.MatchString(*u.Extension), "extension", "invalid_extension", "must be 2 to 6 digits")
	want(u.Timezone == nil || isValidZone(*u.Timezone), "timezone", "invalid_timezone", "must be an IANA name such as Europe/London")
	if u.Language != nil {
		_, err := language.Parse(*u.Language)
		want(err == nil, "language", "invalid_language", "must be a language tag such as en or de-CH")
	}
	want(slices.Contains([]string{"all_devices", "in_order"}, u.RingStrategy), "ring_strategy", "invalid_value",
		"must be all_devices or in_order")
	for name, to := range u.Forward.byName() {
		want(to == nil || len(*to) <= 120, "forward."+name, "invalid_length", "must have at most 120 characters")
	}
	if n := u.Forward.NoAnswerSeconds; n != nil {
		want(*n >= minNoAnswer && *n <= maxNoAnswer, "forward.no_answer_seconds", "out_of_range", "must be 5 to 120")
	}
	if u.pin != nil && *u.pin != "" {
		fault := PINFault(*u.pin, u.extension())
		want(fault == "", "voicemail.pin", "invalid_pin", fault)
	}
	want(slices.Contains([]string{"", AudioAttached, AudioLink}, u.Voicemail.EmailAudio), "voicemail.email_audio", "invalid_value",
		"must be attached or link")
	want(slices.Contains([]string{"invited", "active", Suspended}, u.Status), "status", "invalid_value", "must be active or suspended")
	want(slices.Contains([]string{"inherit", "on", "off"}, u.RecordingMode), "recording_mode", "invalid_value",
		"must be inherit, on or off")
	return wrong
}

// IsAddress reports whether text is an e-mail address without a display name.
func IsAddress(text string) bool {
	a, err := mail.ParseAddress(text)
	return err == nil && a.Address == text && len(text) <= 254 && strings.Contains(text, "@")
}

func isValidZone(name string) bool {
	if name == "" || name == "Local" {
		return false
	}
	_, err := time.LoadLocation(name)
	return err == nil
}
