package cli

import (
	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
	"soniq/internal/config"
)

type clockConfirmOptions struct{ settings *config.Flags }

func newClockConfirm() *cobra.Command {
	var o clockConfirmOptions
	cmd := &cobra.Command{
		Use: "confirm", Short: "confirm that the clock is right after it jumped ahead",
		Long: "After a jump of more than a day nothing is deleted by age for six hours. This command ends the wait.\n" +
			"Set the clock right first: expired recordings, transcripts, events and records are then deleted.",
		Example: "  soniq admin clock confirm", Args: command.Words(), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.settings = command.AddSettings(cmd, dataFolder...)
	return cmd
}

func (o *clockConfirmOptions) run(cmd *cobra.Command) error {
	c, err := o.settings.Load()
	if err != nil {
		return err
	}
	return manage(cmd.Context(), c, cmd.OutOrStdout(), "clock", struct{}{})
}
