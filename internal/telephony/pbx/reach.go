package pbx

import (
	"context"
	"slices"
	"strings"

	"soniq/internal/platform/op"
	"soniq/internal/protocol/sip"
)

// resolvedDestination is a dialable target: a user with phones, an external number with trunks, or a script.
type reach struct {
	user   *Destination
	phones []Phone
	exit   *Exit
	script Script // runs instead of ringing phones; may be nil
	lead   Lead
}

// recordedNumber returns the number of the other end for the call's record.
func (r reach) number(dialled string) string {
	switch {
	case r.user != nil:
		return r.user.Extension
	case r.script != nil:
		return dialled
	case r.exit != nil && r.exit.Number != "":
		return r.exit.Number
	}
	return dialled
}

// callerIDOr returns the number presented to the other side: the caller ID of the outbound route, otherwise own.
func (r reach) shownAs(own string) string {
	if r.exit != nil && r.exit.CallerID != "" {
		return r.exit.CallerID
	}
	return own
}

// release returns the place that route selection reserved. It is for destinations that were not rung.
func (r reach) close() {
	if r.exit != nil && r.exit.Release != nil {
		r.exit.Release()
	}
}

// resolveDestination resolves a dialled string to phones, a script or an outbound route. refusal is the reason if it
// is not possible. Every outbound call goes through resolveOutbound.
func (s *Switch) reach(ctx context.Context, from Caller, to string) (r reach, refusal *Refusal, err error) {
	if refusal = s.foreign(to); refusal != nil {
		return r, refusal, nil
	}
	to = target(to)
	if id, ok := strings.CutPrefix(to, "user:"); ok {
		return s.wayToUser(ctx, from.Org, id)
	}
	if kind, _, named := strings.Cut(to, ":"); named && kind != "ext" {
		return s.ledBy(r, Lead{Org: from.Org, To: to})
	}
	d, ok, err := s.Directory.Extension(ctx, from.Org, strings.TrimPrefix(to, "ext:"))
	if err != nil {
		return r, nil, err
	}
	if ok {
		return s.way(ctx, d)
	}
	if strings.HasPrefix(to, "ext:") {
		return r, nobodyThere(), nil
	}
	return s.outside(ctx, from, to)
}

// resolveUser resolves a user with the user's rules.
func (s *Switch) wayToUser(ctx context.Context, org, id string) (reach, *Refusal, error) {
	d, ok, err := s.Directory.User(ctx, org, id)
	if err != nil || !ok {
		return reach{}, noUser(), err
	}
	return s.way(ctx, d)
}

func noUser() *Refusal {
	return &Refusal{Status: 404, Phrase: "There is no such user", Reason: "invalid_number"}
}

// resolveDirect resolves the phones of a user or an outbound route, never a script.
func (s *Switch) people(ctx context.Context, from Caller, to, device string) (r reach, refusal *Refusal, err error) {
	if id, ok := strings.CutPrefix(to, "user:"); ok {
		return s.reachUser(ctx, from.Org, id, device)
	}
	if refusal = s.foreign(to); refusal != nil {
		return r, refusal, nil
	}
	to = target(to)
	d, ok, err := s.Directory.Extension(ctx, from.Org, strings.TrimPrefix(to, "ext:"))
	switch {
	case err != nil:
		return r, nil, err
	case ok && d.UserID != "":
		return s.phonesOf(ctx, d, device)
	case ok:
		return r, nowhere(), nil
	case strings.HasPrefix(to, "ext:"):
		return r, nobodyThere(), nil
	}
	return s.outside(ctx, from, to)
}

// resolveForConsultation is resolveDestination for a warm transfer: users are rung on their phones whatever their
// rules say.
func (s *Switch) askable(ctx context.Context, from Caller, to string) (reach, *Refusal, error) {
	r, refusal, err := s.reach(ctx, from, to)
	if r.script == nil || !strings.HasPrefix(r.lead.To, "user:") {
		return r, refusal, err
	}
	return s.people(ctx, from, r.lead.To, "")
}

func nobodyThere() *Refusal {
	return &Refusal{Status: 404, Phrase: "Nobody has this extension", Reason: "invalid_number"}
}

// resolveUserPhones returns the phones of a user, or one of them.
func (s *Switch) reachUser(ctx context.Context, org, user, device string) (reach, *Refusal, error) {
	d, ok, err := s.Directory.User(ctx, org, user)
	if err != nil || !ok {
		return reach{}, noUser(), err
	}
	return s.phonesOf(ctx, d, device)
}

// rejectForeignHost refuses SIP URIs of other hosts. Their users are not ours, even if a user part equals one of
// ours.
func (s *Switch) foreign(to string) *Refusal {
	u, err := sip.ParseURI(to)
	if err != nil || !strings.HasPrefix(u.Scheme, "sip") || s.server.Owns(u) {
		return nil
	}
	return &Refusal{Status: 403, Phrase: "SIP addresses elsewhere are not called: " + u.Host + " is not this server", Reason: "blocked"}
}

// dialString returns the user part of a SIP URI, or the text itself.
func target(to string) string {
	if u, err := sip.ParseURI(to); err == nil && u.User != "" && strings.HasPrefix(u.Scheme, "sip") {
		return dialled(u)
	}
	return strings.TrimPrefix(to, "tel:")
}

// extensionOf returns the part of a destination that may be an extension.
func extensionIn(to string) string { return strings.TrimPrefix(target(to), "ext:") }

// phonesOf returns the reachable phones of a user, or the one of the given device.
func (s *Switch) phonesOf(ctx context.Context, d Destination, device string) (r reach, refusal *Refusal, err error) {
	phones, err := s.Directory.Phones(ctx, d.Org, d.UserID)
	if err != nil {
		return r, nil, err
	}
	r.user = &d
	r.phones = telephones(slices.DeleteFunc(phones, func(p Phone) bool {
		return !s.server.Reachable(p.Binding) || device != "" && p.DeviceID != device
	}))
	if len(r.phones) == 0 {
		refusal = &Refusal{Status: 480, Phrase: "No phone is registered", Reason: "no_answer"}
	}
	return r, refusal, nil
}

// keepBrowserPhones removes all phones except those in browsers.
func (r *reach) onlyBrowsers() *Refusal {
	r.phones = slices.DeleteFunc(r.phones, func(p Phone) bool { return !inBrowser(p.Binding.Transport) })
	if len(r.phones) > 0 {
		return nil
	}
	return &Refusal{Status: 480, Phrase: "No phone in a browser is registered", Reason: "no_answer"}
}

// groupFlows groups registered contacts to phones. Contacts with one instance are flows of one phone, and only one
// flow rings at a time (RFC 5626 §7).
func telephones(contacts []Phone) (all []Phone) {
	var devices []Phone
	bindings := map[string][]sip.Binding{}
	for _, p := range contacts {
		if bindings[p.DeviceID] == nil {
			devices = append(devices, p)
		}
		bindings[p.DeviceID] = append(bindings[p.DeviceID], p.Binding)
	}
	for _, d := range devices {
		for _, flows := range sip.Phones(bindings[d.DeviceID]) {
			all = append(all, Phone{DeviceID: d.DeviceID, SRTP: d.SRTP, Binding: flows[0], Flows: flows[1:]})
		}
	}
	return all
}

func (s *Switch) outside(ctx context.Context, from Caller, number string) (r reach, refusal *Refusal, err error) {
	exit, err := s.Directory.Outside(ctx, from, number)
	if err != nil {
		return r, nil, err
	}
	r.exit, refusal = &exit, exit.Refused
	if refusal == nil && len(exit.Trunks) == 0 {
		refusal = &Refusal{Status: 503, Phrase: "No trunk leads there", Reason: "no_route"}
	}
	return r, refusal, nil
}

// problem returns the refusal as an API error.
func (r *Refusal) problem() *op.Error {
	switch {
	case r.Gate != nil:
		return r.Gate.Problem("to")
	case r.Reason == "blocked":
		return op.Fail("destination_not_allowed", r.Phrase)
	case r.Reason == "in_call":
		return op.Invalid(op.Field("to", r.Reason, r.Phrase))
	case r.Status == 404 || r.Status == 484:
		return op.Invalid(op.Field("to", "invalid_number", r.Phrase))
	case r.Reason == "no_answer":
		return op.Invalid(op.Field("to", "not_reachable", r.Phrase))
	}
	return op.Fail("carrier_error", r.Phrase)
}
