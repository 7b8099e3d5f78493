package cli

import (
	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
	"soniq/internal/config"
	"soniq/internal/control"
)

type numbersPortStatusOptions struct {
	settings *config.Flags
	request  control.PortRequest
}

func newNumbersPortStatus() *cobra.Command {
	var o numbersPortStatusOptions
	cmd := &cobra.Command{
		Use: "port-status", Short: "set the status of numbers that are ported from another carrier (an operator's command, on the data folder)",
		Example: "  soniq numbers port-status --org org_… --id por_… --status scheduled --detail 'on Monday'",
		Args:    command.Words(), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&o.request.Org, "org", "", "id of the organisation")
	f.StringVar(&o.request.ID, "id", "", "id of the port")
	f.StringVar(&o.request.Status, "status", "", "in_review, scheduled, completed, rejected or canceled")
	f.StringVar(&o.request.Trunk, "trunk", "", "with completed: id of the trunk over which calls to the numbers come")
	f.StringVar(&o.request.Detail, "detail", "", "text for the organisation, such as a date")
	for _, free := range []string{"org", "id", "trunk", "detail"} {
		command.CompleteFlag(cmd, free)
	}
	command.CompleteFlag(cmd, "status", command.PortStatuses...)
	o.settings = command.AddSettings(cmd, dataFolder...)
	return cmd
}

func (o *numbersPortStatusOptions) run(cmd *cobra.Command) error {
	c, err := o.settings.Load()
	if err != nil {
		return err
	}
	if o.request.Org == "" || o.request.ID == "" || o.request.Status == "" {
		return command.UsageErrorf(cmd, "--org, --id and --status are needed")
	}
	return manage(cmd.Context(), c, cmd.OutOrStdout(), "port.set", o.request)
}
