package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"soniq/internal/identity/user"
)

// This file holds the commands with which an operator lets the first people in.

// userIn is what users add and users password ask for.
type userIn struct{ Org, Email, First, Last, Role string }

func usersCommand(ctx context.Context, args []string) error {
	if len(args) > 0 && (args[0] == "--help" || args[0] == "-h") {
		args = []string{"add", "", args[0]}
	}
	if len(args) < 2 || args[0] != "add" && args[0] != "password" {
		return errors.New("users: say what to do, and for whom: soniq users add|password EMAIL")
	}
	in, action := userIn{Email: args[1]}, map[string]string{"add": "user.add", "password": "user.link"}[args[0]]
	c, err := load("users "+args[0]+" EMAIL", args[2:], os.Stdout, func(fs *flag.FlagSet) {
		fs.StringVar(&in.Org, "org", "", "id of the organisation, where there are several")
		if args[0] == "add" {
			fs.StringVar(&in.First, "first-name", "", "first name; what stands before the @ unless given")
			fs.StringVar(&in.Last, "last-name", "", "last name")
			fs.StringVar(&in.Role, "role", "owner", "owner, admin, supervisor, agent or viewer")
		}
	}, "data", "db", "base-url", "config")
	if err != nil {
		return err
	}
	return manage(ctx, c, action, in)
}

// addUser makes a user without a telephone, and a link with which they choose a password.
func (h *house) addUser(ctx context.Context, in userIn) (string, error) {
	org, err := h.onlyOrg(ctx, in.Org)
	if err != nil {
		return "", err
	}
	name, _, _ := strings.Cut(in.Email, "@")
	no := false
	u, err := h.users.Create(ctx, org, user.Fresh{Email: in.Email, FirstName: first(in.First, name), LastName: in.Last, Role: in.Role, SendInvite: &no, ProvisionSIP: &no})
	if err != nil {
		return "", plain(err)
	}
	return h.account.Link(ctx, org, u.ID)
}

// linkUser makes a link with which a user chooses a password anew.
func (h *house) linkUser(ctx context.Context, in userIn) (string, error) {
	found, err := h.users.ByEmail(ctx, in.Email, in.Org)
	if err != nil {
		return "", err
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("there is no user %s; soniq users add %s makes one", in.Email, in.Email)
	case 1:
		return h.account.Link(ctx, found[0].OrgID, found[0].ID)
	}
	var orgs []string
	for _, u := range found {
		orgs = append(orgs, u.OrgID)
	}
	return "", fmt.Errorf("several organisations have a user %s; say which with --org: %s", in.Email, strings.Join(orgs, ", "))
}
