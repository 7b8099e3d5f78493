// Package cli has the commands of the program, one file for each. Those that use a running soniq by its public API are in remote. serve,
// demo and the commands of an operator without a running server build a server in their own process.
package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
	"soniq/internal/cli/remote"
	"soniq/internal/config"
)

// ErrFailed is returned by a command that has already printed the reason. The exit code is 1.
var ErrFailed = errors.New("failed")

// The groups in which soniq help lists the commands.
const (
	groupServer = "server"
	groupAdmin  = "admin"
	groupAPI    = "api"
)

// NewCommand returns the command soniq with all commands below it.
func NewCommand() *cobra.Command {
	root := &cobra.Command{
		Use: "soniq", Short: "a telephony platform in one binary", Version: config.Version,
		Example:       "  soniq demo\n  soniq serve --data /var/lib/soniq",
		SilenceErrors: true, SilenceUsage: true, DisableAutoGenTag: true, Args: cobra.ArbitraryArgs, RunE: runRoot,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetVersionTemplate("soniq {{.Version}}\n")
	root.SetHelpFunc(command.PrintHelp)
	root.SetFlagErrorFunc(command.FlagError)
	root.SetHelpCommand(command.NewHelp())
	root.AddGroup(&cobra.Group{ID: groupServer, Title: "the server"}, &cobra.Group{ID: groupAdmin, Title: "the operator's records"},
		&cobra.Group{ID: groupAPI, Title: "a running soniq, by its API"})
	addIn(root, groupServer, newServe(), newDemo(), newDoctor(), newMigrate(), newBackup(), newSpeechModel())
	addIn(root, groupAdmin, newAdmin())
	addIn(root, groupAPI, remote.NewCalls(), remote.NewNumbers(newNumbersAddBlock(), newNumbersConfirm(), newNumbersPortStatus()),
		remote.NewDevices(),
		remote.NewEvents(), remote.NewListen(), remote.NewTrigger(), newMCP())
	root.AddCommand(newCompletion(), newVersion())
	root.AddCommand(oldNames()...)
	root.AddCommand(newWorkers()...)
	root.InitDefaultHelpCmd()
	return root
}

func addIn(root *cobra.Command, id string, commands ...*cobra.Command) {
	for _, c := range commands {
		c.GroupID = id
		root.AddCommand(c)
	}
}

// Run executes the command that the arguments name. It returns ErrFailed if the command has already printed the reason.
func Run(ctx context.Context, args []string) error {
	root := NewCommand()
	root.SetArgs(command.DoubleDashes(root, args))
	return root.ExecuteContext(ctx)
}

func runRoot(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	return command.UnknownCommand(cmd, args[0])
}
