package cli

import (
	"context"
	"errors"
	"flag"
	"os"

	"soniq/internal/config"
	"soniq/internal/control"
)

// This file holds the commands with which an operator lets the first people in.

func usersCommand(ctx context.Context, args []string) error {
	if len(args) > 0 && (args[0] == "--help" || args[0] == "-h") {
		args = []string{"add", "", args[0]}
	}
	if len(args) < 2 || args[0] != "add" && args[0] != "password" {
		return errors.New("users: say what to do, and for whom: soniq users add|password EMAIL")
	}
	in, action := control.UserRequest{Email: args[1]}, map[string]string{"add": "user.add", "password": "user.link"}[args[0]]
	c, err := config.Load("users "+args[0]+" EMAIL", args[2:], os.Stdout, func(fs *flag.FlagSet) {
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
