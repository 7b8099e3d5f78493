// Command mandocs writes the man pages of all commands of soniq into a folder.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"soniq/internal/cli"
	"soniq/internal/cli/command"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: mandocs FOLDER")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "mandocs:", err)
		os.Exit(1)
	}
}

// write writes the page of each visible command, such as soniq-calls-dial.1.
func write(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	root := cli.NewCommand()
	describe(root)
	return doc.GenManTree(root, &doc.GenManHeader{Title: "SONIQ", Section: "1", Source: "soniq " + root.Version, Manual: "soniq"}, folder)
}

// describe adds environment variables and defaults to the texts of all flags.
func describe(cmd *cobra.Command) {
	cmd.DisableAutoGenTag = true
	cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Usage, f.Annotations = command.FlagText(f), nil })
	for _, c := range cmd.Commands() {
		describe(c)
	}
}
