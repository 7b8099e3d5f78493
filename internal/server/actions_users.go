package server

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"soniq/internal/control"
	"soniq/internal/identity/user"
)

// addUser creates a user without a phone, and returns a link to choose a password.
func (p *Platform) addUser(ctx context.Context, in control.UserRequest) (string, error) {
	org, err := p.onlyOrg(ctx, in.Org)
	if err != nil {
		return "", err
	}
	name, _, _ := strings.Cut(in.Email, "@")
	no := false
	u, err := p.users.Create(ctx, org, user.Fresh{Email: in.Email, FirstName: cmp.Or(in.First, name), LastName: in.Last, Role: in.Role, SendInvite: &no, ProvisionSIP: &no})
	if err != nil {
		return "", commandError(err)
	}
	return p.signin.Link(ctx, org, u.ID)
}

// linkUser returns a link with which a user chooses a new password.
func (p *Platform) linkUser(ctx context.Context, in control.UserRequest) (string, error) {
	found, err := p.users.ByEmail(ctx, in.Email, in.Org)
	if err != nil {
		return "", err
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("there is no user %s; soniq admin users add %s makes one", in.Email, in.Email)
	case 1:
		return p.signin.Link(ctx, found[0].OrgID, found[0].ID)
	}
	var orgs []string
	for _, u := range found {
		orgs = append(orgs, u.OrgID)
	}
	return "", fmt.Errorf("several organisations have a user %s; say which with --org: %s", in.Email, strings.Join(orgs, ", "))
}
