package pbx

import (
	"context"
	"slices"
	"strings"

	"soniq/internal/platform/op"
	"soniq/internal/protocol/media/sdp"
	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/telephony/call"
)

// resolvedDestination is a dialable target: a user with phones, an external number with trunks, or a script.
type resolvedDestination struct {
	user     *Destination
	phones   []Phone
	outbound *OutboundRoute
	script   Script // runs instead of ringing phones; may be nil
	handoff  Handoff
}

// recordedNumber returns the number of the other end for the call's record.
func (r resolvedDestination) recordedNumber(dialled string) string {
	switch {
	case r.user != nil:
		return r.user.Extension
	case r.script != nil:
		return dialled
	case r.outbound != nil && r.outbound.Number != "":
		return r.outbound.Number
	}
	return dialled
}

// callerIDOr returns the number presented to the other side: the caller ID of the outbound route, otherwise own.
func (r resolvedDestination) callerIDOr(own string) string {
	if r.outbound != nil && r.outbound.CallerID != "" {
		return r.outbound.CallerID
	}
	return own
}

// release returns the place that route selection reserved. It is for destinations that were not rung.
func (r resolvedDestination) release() {
	if r.outbound != nil && r.outbound.Release != nil {
		r.outbound.Release()
	}
}

// resolveDestination resolves a dialled string to phones, a script or an outbound route. refusal is the reason if it
// is not possible. Every outbound call goes through resolveOutbound.
func (s *Switch) resolveDestination(ctx context.Context, from Caller, to string) (r resolvedDestination, refusal *Refusal, err error) {
	if refusal = s.rejectForeignHost(to); refusal != nil {
		return r, refusal, nil
	}
	to = dialString(to)
	if id, ok := strings.CutPrefix(to, "user:"); ok {
		return s.resolveUser(ctx, from.Org, id)
	}
	if kind, _, named := strings.Cut(to, ":"); named && kind != "ext" {
		return s.routeToScript(r, Handoff{Org: from.Org, To: to})
	}
	d, ok, err := s.cfg.Identity.Extension(ctx, from.Org, strings.TrimPrefix(to, "ext:"))
	if err != nil {
		return r, nil, err
	}
	if ok {
		return s.resolveEntry(ctx, d)
	}
	if strings.HasPrefix(to, "ext:") {
		return r, unknownExtensionRefusal(), nil
	}
	return s.resolveOutbound(ctx, from, to)
}

// resolveUser resolves a user with the user's rules.
func (s *Switch) resolveUser(ctx context.Context, org, id string) (resolvedDestination, *Refusal, error) {
	d, ok, err := s.cfg.Identity.User(ctx, org, id)
	if err != nil || !ok {
		return resolvedDestination{}, unknownUserRefusal(), err
	}
	return s.resolveEntry(ctx, d)
}

func unknownUserRefusal() *Refusal {
	return &Refusal{Status: 404, Phrase: "the user does not exist", Reason: "invalid_number"}
}

// resolveDirect resolves the phones of a user or an outbound route, never a script.
func (s *Switch) resolveDirect(ctx context.Context, from Caller, to, device string) (r resolvedDestination, refusal *Refusal, err error) {
	if id, ok := strings.CutPrefix(to, "user:"); ok {
		return s.resolveUserPhones(ctx, from.Org, id, device)
	}
	if refusal = s.rejectForeignHost(to); refusal != nil {
		return r, refusal, nil
	}
	to = dialString(to)
	d, ok, err := s.cfg.Identity.Extension(ctx, from.Org, strings.TrimPrefix(to, "ext:"))
	switch {
	case err != nil:
		return r, nil, err
	case ok && d.UserID != "":
		return s.phonesOf(ctx, d, device)
	case ok:
		return r, noRouteRefusal(), nil
	case strings.HasPrefix(to, "ext:"):
		return r, unknownExtensionRefusal(), nil
	}
	return s.resolveOutbound(ctx, from, to)
}

// resolveForConsultation is resolveDestination for a warm transfer: users are rung on their phones whatever their
// rules say.
func (s *Switch) resolveForConsultation(ctx context.Context, from Caller, to string) (resolvedDestination, *Refusal, error) {
	r, refusal, err := s.resolveDestination(ctx, from, to)
	if r.script == nil || !strings.HasPrefix(r.handoff.To, "user:") {
		return r, refusal, err
	}
	return s.resolveDirect(ctx, from, r.handoff.To, "")
}

func unknownExtensionRefusal() *Refusal {
	return &Refusal{Status: 404, Phrase: "no user or queue has this extension", Reason: "invalid_number"}
}

// resolveUserPhones returns the phones of a user, or one of them.
func (s *Switch) resolveUserPhones(ctx context.Context, org, user, device string) (resolvedDestination, *Refusal, error) {
	d, ok, err := s.cfg.Identity.User(ctx, org, user)
	if err != nil || !ok {
		return resolvedDestination{}, unknownUserRefusal(), err
	}
	return s.phonesOf(ctx, d, device)
}

// rejectForeignHost refuses SIP URIs of other hosts. Their users are not ours, even if a user part equals one of
// ours.
func (s *Switch) rejectForeignHost(to string) *Refusal {
	u, err := sipmsg.ParseURI(to)
	if err != nil || !strings.HasPrefix(u.Scheme, "sip") || s.server.IsLocalURI(u) {
		return nil
	}
	return &Refusal{Status: 403, Phrase: "SIP addresses of other servers are not called: " + u.Host + " is not this server",
		Reason: "blocked"}
}

// dialString returns the user part of a SIP URI, or the text itself.
func dialString(to string) string {
	if u, err := sipmsg.ParseURI(to); err == nil && u.User != "" && strings.HasPrefix(u.Scheme, "sip") {
		return dialled(u)
	}
	return strings.TrimPrefix(to, "tel:")
}

// extensionOf returns the part of a destination that may be an extension.
func extensionOf(to string) string { return strings.TrimPrefix(dialString(to), "ext:") }

// phonesOf returns the reachable phones of a user, or the one of the given device.
func (s *Switch) phonesOf(ctx context.Context, d Destination, device string) (r resolvedDestination, refusal *Refusal, err error) {
	phones, err := s.cfg.Routes.Phones(ctx, d.Org, d.UserID)
	if err != nil {
		return r, nil, err
	}
	r.user = &d
	elsewhere := slices.ContainsFunc(phones, func(p Phone) bool {
		return s.server.IsElsewhere(p.Binding) && !s.server.Reachable(p.Binding)
	})
	r.phones = groupFlows(slices.DeleteFunc(phones, func(p Phone) bool {
		return !s.server.Reachable(p.Binding) || device != "" && p.DeviceID != device
	}))
	switch {
	case len(r.phones) == 0 && elsewhere:
		refusal = &Refusal{Status: 480, Phrase: "the phone of the user is connected to another server of this installation", Reason: "no_answer",
			Elsewhere: true}
	case len(r.phones) == 0:
		refusal = &Refusal{Status: 480, Phrase: "no phone of the user is registered", Reason: "no_answer"}
	}
	return r, refusal, nil
}

// keepBrowserPhones removes all phones except those in browsers.
func (r *resolvedDestination) keepBrowserPhones() *Refusal {
	r.phones = slices.DeleteFunc(r.phones, func(p Phone) bool { return !inBrowser(p.Binding.Transport) })
	if len(r.phones) > 0 {
		return nil
	}
	return &Refusal{Status: 480, Phrase: "no browser phone of the user is registered", Reason: "no_answer"}
}

// groupFlows groups registered contacts to phones. Contacts with one instance are flows of one phone, and only one
// flow rings at a time (RFC 5626 §7).
func groupFlows(contacts []Phone) (all []Phone) {
	var devices []Phone
	bindings := map[string][]sip.Binding{}
	for _, p := range contacts {
		if bindings[p.DeviceID] == nil {
			devices = append(devices, p)
		}
		bindings[p.DeviceID] = append(bindings[p.DeviceID], p.Binding)
	}
	for _, d := range devices {
		for _, flows := range sip.GroupByPhone(bindings[d.DeviceID]) {
			all = append(all, Phone{DeviceID: d.DeviceID, SRTP: d.SRTP, Binding: flows[0], Flows: flows[1:]})
		}
	}
	return all
}

func (s *Switch) resolveOutbound(ctx context.Context, from Caller, number string) (r resolvedDestination, refusal *Refusal, err error) {
	exit, err := s.cfg.Outbound.RouteOutbound(ctx, from, number)
	if err != nil {
		return r, nil, err
	}
	r.outbound, refusal = &exit, exit.Refused
	if refusal == nil && len(exit.Trunks) == 0 {
		refusal = &Refusal{Status: 503, Phrase: "no trunk takes this number", Reason: "no_route"}
	}
	return r, refusal, nil
}

// problem returns the refusal as an API error.
func (r *Refusal) problem() *op.Error {
	switch {
	case r.Gate != nil:
		return r.Gate.APIError("to")
	case r.Limit != nil:
		e := op.Fail("concurrency_limit", r.Phrase)
		e.Extra = map[string]any{"limit": r.Limit.Name}
		return e
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

// profileOf returns the media profile of a phone or trunk: WebRTC for browsers, otherwise SDES as configured.
func profileOf(t sipmsg.Transport, srtp string) sdp.Profile {
	switch {
	case inBrowser(t):
		return sdp.Profile{Security: sdp.WebRTC}
	case srtp == "required":
		return sdp.Profile{Security: sdp.SDESRequired}
	case srtp == "preferred":
		return sdp.Profile{Security: sdp.SDESPreferred}
	}
	return sdp.Profile{}
}

// inBrowser reports whether a transport belongs to a phone in a browser.
func inBrowser(t sipmsg.Transport) bool { return t == "ws" || t == "wss" }

// browserHeader returns the header that tells a phone in a browser to which call its SIP dialog belongs. Other phones and trunks do not
// get it.
func (c *liveCall) browserHeader(t sipmsg.Transport) []sip.Header {
	if !inBrowser(t) {
		return nil
	}
	return []sip.Header{{Name: call.IDHeader, Value: c.id}}
}

// nameCall adds the browserHeader to the responses to a phone that called us.
func (c *liveCall) nameCall(in *sip.Inbound) {
	if in.Account == "" {
		return
	}
	for _, h := range c.browserHeader(in.Transport) {
		in.AddHeader(h)
	}
}
