package cli

import (
	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
	"soniq/internal/config"
	"soniq/internal/control"
)

type usersAddOptions struct {
	settings *config.Flags
	request  control.UserRequest
}

func newUsersAdd() *cobra.Command {
	var o usersAddOptions
	cmd := &cobra.Command{
		Use: "add EMAIL", Short: "add a user and print the link with which they choose a password",
		Example: "  soniq admin users add ada@example.com --first-name Ada --role admin",
		Args:    command.Words("EMAIL"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&o.request.Org, "org", "", "id of the organisation, if there are several")
	f.StringVar(&o.request.First, "first-name", "", "first name; the part before the @ unless given")
	f.StringVar(&o.request.Last, "last-name", "", "last name")
	f.StringVar(&o.request.Role, "role", "owner", "owner, admin, supervisor, agent or viewer")
	for _, free := range []string{"org", "first-name", "last-name"} {
		command.CompleteFlag(cmd, free)
	}
	command.CompleteFlag(cmd, "role", command.Roles...)
	o.settings = command.AddSettings(cmd, append([]string{"base-url"}, dataFolder...)...)
	return cmd
}

func (o *usersAddOptions) run(cmd *cobra.Command, email string) error {
	c, err := o.settings.Load()
	if err != nil {
		return err
	}
	o.request.Email = email
	return manage(cmd.Context(), c, cmd.OutOrStdout(), "user.add", o.request)
}
