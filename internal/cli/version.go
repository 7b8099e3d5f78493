package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"soniq/internal/config"
)

func newVersion() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "print the version", Example: "  soniq version", Args: cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.NoFileCompletions, RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "soniq", config.Version)
			return err
		}}
}
