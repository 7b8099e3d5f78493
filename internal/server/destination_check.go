package server

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"soniq/internal/contactcenter/routing"
	"soniq/internal/identity/org"
	"soniq/internal/identity/user"
	"soniq/internal/platform/db"
	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/telephony/number"
	"soniq/internal/telephony/trunk"
)

// checkDestination returns the reason why a stored destination, such as the overflow of a queue, is invalid, or "". Whether an
// outside number may be dialled is checked when it is dialled.
func (p *Platform) checkDestination(ctx context.Context, orgID, to string) (string, error) {
	if to == "" || len(to) > 200 {
		return "must be a number, ext:, user:, queue:, flow:, voicemail: or sip: destination", nil
	}
	kind, name, named := strings.Cut(to, ":")
	if !named {
		return p.reachNumber(ctx, orgID, to)
	}
	q := p.db.Read(ctx)
	var err error
	switch kind {
	case "ext":
		_, err = org.ExtensionOwner(ctx, q, orgID, name)
	case "user":
		_, err = p.users.Get(ctx, q, orgID, name)
	case "queue":
		_, err = p.queues.Get(ctx, q, orgID, name)
	case "flow":
		_, err = p.flows.Get(ctx, q, orgID, name)
	case "voicemail":
		return p.checkMailbox(ctx, orgID, name)
	case "sip", "sips":
		u, err := sipmsg.ParseURI(to)
		switch {
		case err != nil || u.User == "":
			return "not a valid SIP address", nil
		case !p.owns(u):
			return foreignHostError(u), nil
		}
		return p.checkOwnAddress(ctx, orgID, u)
	case "tel":
		return p.reachNumber(ctx, orgID, name)
	default:
		return "must be a number, ext:, user:, queue:, flow:, voicemail: or sip: destination", nil
	}
	return notFoundReason(err, to)
}

// checkOwnAddress returns the reason why a SIP address of this server leads nowhere, or "". Its user part must be an extension or a number.
// Feature codes, such as *97, are for phones alone.
func (p *Platform) checkOwnAddress(ctx context.Context, orgID string, u sipmsg.URI) (string, error) {
	name, _, _ := strings.Cut(u.User, ";") // before the parameters of a number
	if name = sipmsg.Readable(strings.TrimPrefix(name, "tel:")); routing.IsExtension(name) {
		return p.checkDestination(ctx, orgID, "ext:"+name)
	}
	return p.reachNumber(ctx, orgID, name)
}

// checkForward is reach for the forwarding of users, in which an extension may have no prefix.
func (p *Platform) checkForward(ctx context.Context, orgID, to string) (string, error) {
	if routing.IsExtension(to) {
		to = "ext:" + to
	}
	return p.checkDestination(ctx, orgID, to)
}

// notFoundReason returns a reason if the error means that the object does not exist.
func notFoundReason(err error, to string) (string, error) {
	if db.IsNone(err) {
		return "there is no " + to, nil
	}
	if err != nil {
		return "", fmt.Errorf("find %s: %w", to, err)
	}
	return "", nil
}

func (p *Platform) reachNumber(ctx context.Context, orgID, text string) (string, error) {
	o, err := p.orgs.Get(ctx, orgID)
	if err != nil {
		return "", fmt.Errorf("find organisation: %w", err)
	}
	if _, ok := number.Parse(text, o.Country); !ok && !trunk.IsShortNumber(o.Country, text) {
		return "not a valid number for " + o.Country, nil
	}
	return "", nil
}

// checkMailbox returns the reason why a mailbox is invalid, or "".
func (p *Platform) checkMailbox(ctx context.Context, orgID, id string) (string, error) {
	q := p.db.Read(ctx)
	var err error
	switch prefix, _, _ := strings.Cut(id, "_"); prefix {
	case "usr":
		_, err = p.users.Get(ctx, q, orgID, id)
	case "que":
		_, err = p.queues.Get(ctx, q, orgID, id)
	case "flw":
		_, err = p.flows.Get(ctx, q, orgID, id)
	default:
		return "voicemail: must name a user, a queue or a flow", nil
	}
	return notFoundReason(err, "voicemail:"+id)
}

// finder returns the ids of what leads to a destination.
type finder func(ctx context.Context, q db.Querier, org, to string) ([]string, error)

// findAll returns the ids that finders return for destinations, each once.
func findAll(ctx context.Context, q db.Querier, org string, all []finder, destinations ...string) (ids []string, err error) {
	for _, find := range all {
		for _, to := range destinations {
			some, err := find(ctx, q, org, to)
			if err != nil {
				return nil, fmt.Errorf("find what leads to %s: %w", to, err)
			}
			ids = append(ids, some...)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// forwardingTo returns the ids of the users who forward to one of the destinations, and of the numbers that fall back there.
func (p *Platform) forwardingTo(ctx context.Context, q db.Querier, org string, destinations ...string) ([]string, error) {
	return findAll(ctx, q, org, []finder{p.users.ForwardingTo, p.numbers.FallingBackTo}, destinations...)
}

// pointingAt returns the ids of users, numbers, queues and flows that lead to one of the destinations. Steps of flows name the last
// part of a destination alone: inFlows.
func (p *Platform) pointingAt(ctx context.Context, q db.Querier, org string, destinations []string, inFlows ...string) ([]string, error) {
	ids, err := findAll(ctx, q, org, []finder{p.users.ForwardingTo, p.numbers.FallingBackTo, p.queues.OverflowingTo}, destinations...)
	if err != nil {
		return nil, err
	}
	flows, err := findAll(ctx, q, org, []finder{p.flows.UsedBy}, inFlows...)
	return append(ids, flows...), err
}

// PointingAtUser implements user.Destinations.
func (d userDependencies) PointingAtUser(ctx context.Context, q db.Querier, u user.User) ([]string, error) {
	to, inFlows := []string{"user:" + u.ID, "voicemail:" + u.ID}, []string{u.ID}
	if u.Extension != nil {
		to, inFlows = append(to, "ext:"+*u.Extension, *u.Extension), append(inFlows, "ext:"+*u.Extension)
	}
	ids, err := d.p.pointingAt(ctx, q, u.OrgID, to, inFlows...)
	return slices.DeleteFunc(ids, func(id string) bool { return id == u.ID }), err
}

// PointingAtNumber implements number.Destinations.
func (t targets) PointingAtNumber(ctx context.Context, q db.Querier, n number.Number) ([]string, error) {
	ids, err := t.p.pointingAt(ctx, q, n.OrgID, []string{n.Number, "tel:" + n.Number}, n.Number)
	return slices.DeleteFunc(ids, func(id string) bool { return id == n.ID }), err
}
