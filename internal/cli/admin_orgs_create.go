package cli

import (
	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
	"soniq/internal/config"
	"soniq/internal/control"
)

type orgsCreateOptions struct {
	settings *config.Flags
	request  control.OrgRequest
}

func newOrgsCreate() *cobra.Command {
	var o orgsCreateOptions
	cmd := &cobra.Command{
		Use: "create", Short: "create an organisation and print its id",
		Example: "  soniq admin orgs create --name 'Harbor Internet' --country GB",
		Args:    command.Words(), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	cmd.Flags().StringVar(&o.request.Name, "name", "", "name of the organisation")
	command.CompleteFlag(cmd, "name")
	o.settings = command.AddSettings(cmd, append([]string{"country"}, dataFolder...)...)
	return cmd
}

func (o *orgsCreateOptions) run(cmd *cobra.Command) error {
	c, err := o.settings.Load()
	if err != nil {
		return err
	}
	if o.request.Country = c.Country; o.request.Name == "" {
		return command.UsageErrorf(cmd, "--name is missing, such as --name 'Harbor Internet'")
	}
	return manage(cmd.Context(), c, cmd.OutOrStdout(), "org.create", o.request)
}
