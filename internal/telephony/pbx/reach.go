package pbx

import (
	"context"
	"slices"
	"strings"

	"soniq/internal/platform/op"
	"soniq/internal/protocol/sip"
)

// A reach is where a call can be led: a user with their phones, or a number with the trunks that lead there.
type reach struct {
	user   *Destination
	phones []Phone
	exit   *Exit
	script Script // who leads there, in place of phones
	lead   Lead
}

// number is what is written down as the other end.
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

// shownAs is the number the other side sees.
func (r reach) shownAs(own string) string {
	if r.exit != nil && r.exit.CallerID != "" {
		return r.exit.CallerID
	}
	return own
}

// close gives back what finding the way took, where nothing was rung.
func (r reach) close() {
	if r.exit != nil && r.exit.Release != nil {
		r.exit.Release()
	}
}

// reach finds where somebody of ours can be led. refusal says why not; no other door leads outside.
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

// wayToUser is where calls to a user lead.
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

// people finds the phones of somebody of ours, or the way outside, and nothing else.
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

// askable is reach for somebody who is to be asked first: the phones of people of ours are rung in any case.
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

// reachUser finds the phones of a user, or one of them.
func (s *Switch) reachUser(ctx context.Context, org, user, device string) (reach, *Refusal, error) {
	d, ok, err := s.Directory.User(ctx, org, user)
	if err != nil || !ok {
		return reach{}, noUser(), err
	}
	return s.phonesOf(ctx, d, device)
}

// foreign refuses SIP addresses elsewhere: their users are none of ours, also where one of ours is called the same.
func (s *Switch) foreign(to string) *Refusal {
	u, err := sip.ParseURI(to)
	if err != nil || !strings.HasPrefix(u.Scheme, "sip") || s.server.Owns(u) {
		return nil
	}
	return &Refusal{Status: 403, Phrase: "SIP addresses elsewhere are not called: " + u.Host + " is not this server", Reason: "blocked"}
}

// target is the user part of a SIP address, or the text itself.
func target(to string) string {
	if u, err := sip.ParseURI(to); err == nil && u.User != "" && strings.HasPrefix(u.Scheme, "sip") {
		return dialled(u)
	}
	return strings.TrimPrefix(to, "tel:")
}

// extensionIn is what of a destination may be an extension.
func extensionIn(to string) string { return strings.TrimPrefix(target(to), "ext:") }

// phonesOf are the phones of a user that can be rung, or one of them.
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

// onlyBrowsers keeps of phones those in browsers.
func (r *reach) onlyBrowsers() *Refusal {
	r.phones = slices.DeleteFunc(r.phones, func(p Phone) bool { return !inBrowser(p.Binding.Transport) })
	if len(r.phones) > 0 {
		return nil
	}
	return &Refusal{Status: 480, Phrase: "No phone in a browser is registered", Reason: "no_answer"}
}

// telephones are the telephones behind registered contacts: those of one instance are flows of one telephone, of which one is
// rung at a time (RFC 5626 §7).
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

// problem is a refusal as the API tells it.
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
