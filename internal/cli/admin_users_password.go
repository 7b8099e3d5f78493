package cli

import (
	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
	"soniq/internal/config"
	"soniq/internal/control"
)

type usersPasswordOptions struct {
	settings *config.Flags
	request  control.UserRequest
}

func newUsersPassword() *cobra.Command {
	var o usersPasswordOptions
	cmd := &cobra.Command{
		Use: "password EMAIL", Short: "print a link with which a user chooses a new password",
		Example: "  soniq admin users password ada@example.com", Args: command.Words("EMAIL"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	cmd.Flags().StringVar(&o.request.Org, "org", "", "id of the organisation, if there are several")
	command.CompleteFlag(cmd, "org")
	o.settings = command.AddSettings(cmd, append([]string{"base-url"}, dataFolder...)...)
	return cmd
}

func (o *usersPasswordOptions) run(cmd *cobra.Command, email string) error {
	c, err := o.settings.Load()
	if err != nil {
		return err
	}
	o.request.Email = email
	return manage(cmd.Context(), c, cmd.OutOrStdout(), "user.link", o.request)
}
