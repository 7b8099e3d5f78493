package cli

import (
	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
	"soniq/internal/config"
	"soniq/internal/control"
)

type keysCreateOptions struct {
	settings *config.Flags
	request  control.KeyRequest
}

func newKeysCreate() *cobra.Command {
	var o keysCreateOptions
	cmd := &cobra.Command{
		Use: "create", Short: "create an API key and print it",
		Example: "  soniq admin keys create --org org_… --scopes calls:read,memory:read --name reports",
		Args:    command.Words(), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&o.request.Org, "org", "", "id of the organisation")
	f.StringVar(&o.request.Scopes, "scopes", "", "all, or a comma-separated list such as calls:read,memory:read")
	f.StringVar(&o.request.Kind, "kind", "standard", "standard or partner")
	f.StringVar(&o.request.Env, "env", "live", "live or test")
	f.StringVar(&o.request.Name, "name", "command line", "name of the key")
	command.CompleteFlag(cmd, "org")
	command.CompleteList(cmd, "scopes", command.Scopes()...)
	command.CompleteFlag(cmd, "kind", "standard", "partner")
	command.CompleteFlag(cmd, "env", "live", "test")
	command.CompleteFlag(cmd, "name")
	o.settings = command.AddSettings(cmd, dataFolder...)
	return cmd
}

func (o *keysCreateOptions) run(cmd *cobra.Command) error {
	c, err := o.settings.Load()
	if err != nil {
		return err
	}
	if o.request.Org == "" || o.request.Scopes == "" {
		return command.UsageErrorf(cmd, "--org and --scopes are needed, such as --org org_… --scopes all")
	}
	return manage(cmd.Context(), c, cmd.OutOrStdout(), "key.create", o.request)
}
