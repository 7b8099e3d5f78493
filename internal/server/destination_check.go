package server

import (
	"context"
	"fmt"
	"strings"

	"soniq/internal/contactcenter/routing"
	"soniq/internal/identity/org"
	"soniq/internal/platform/db"
	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/number"
)

// reach says what is wrong with a destination that is kept for later, such as the overflow of a queue; "" where nothing is. Whether a
// number of the public network may be dialled is decided when it is.
func (p *Platform) reach(ctx context.Context, orgID, to string) (string, error) {
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
		return p.reachMailbox(ctx, orgID, name)
	case "sip", "sips":
		u, err := sip.ParseURI(to)
		switch {
		case err != nil || u.User == "":
			return "not a valid SIP address", nil
		case !p.owns(u):
			return notOurs(u), nil
		}
		return "", nil
	case "tel":
		return p.reachNumber(ctx, orgID, name)
	default:
		return "must be a number, ext:, user:, queue:, flow:, voicemail: or sip: destination", nil
	}
	return gone(err, to)
}

// reachForward is reach for where a user forwards calls to: an extension may stand by itself there.
func (p *Platform) reachForward(ctx context.Context, orgID, to string) (string, error) {
	if routing.IsExtension(to) {
		to = "ext:" + to
	}
	return p.reach(ctx, orgID, to)
}

// gone says that there is no such thing where that is the error.
func gone(err error, to string) (string, error) {
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
	if _, ok := number.Parse(text, o.Country); !ok {
		return "not a valid number for " + o.Country, nil
	}
	return "", nil
}

// reachMailbox says what is wrong with whose voicemail it is.
func (p *Platform) reachMailbox(ctx context.Context, orgID, id string) (string, error) {
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
	return gone(err, "voicemail:"+id)
}
