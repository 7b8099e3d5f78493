package cli

import (
	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
	"soniq/internal/cli/demo"
	"soniq/internal/config"
)

type demoOptions struct {
	settings *config.Flags
	once     bool
}

func newDemo() *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use: "demo", Short: "run it on this machine with two softphones that call each other", Example: "  soniq demo --once",
		Args: command.Words(), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.settings.Load()
			if err != nil {
				return err
			}
			return demo.Run(cmd.Context(), c, o.once)
		},
	}
	cmd.Flags().BoolVar(&o.once, "once", false, "run the scenario and end with 0, or with 1 if something did not work")
	o.settings = command.AddSettings(cmd, "http", "transcriber", "sherpa", "summarizer", "embedder")
	return cmd
}
