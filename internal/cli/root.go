// Package cli has the commands of the program, one file for each. Commands use the public API or the control socket; serve, demo and the
// commands of an operator without a running server build a server in their own process.
package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

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
		Use: "soniq", Short: "a telephony platform in one binary", Version: config.Version, Example: "  soniq demo\n  soniq serve --data /var/lib/soniq",
		SilenceErrors: true, SilenceUsage: true, DisableAutoGenTag: true, Args: cobra.ArbitraryArgs, RunE: runRoot,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetVersionTemplate("soniq {{.Version}}\n")
	root.SetHelpFunc(printHelp)
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(newHelp())
	root.AddGroup(&cobra.Group{ID: groupServer, Title: "the server"}, &cobra.Group{ID: groupAdmin, Title: "the operator's records"},
		&cobra.Group{ID: groupAPI, Title: "a running soniq, by its API"})
	addIn(root, groupServer, newServe(), newDemo(), newDoctor(), newMigrate(), newBackup(), newSpeechModel())
	addIn(root, groupAdmin, newAdmin())
	addIn(root, groupAPI, newCalls(), newNumbers(), newDevices(), newEvents(), newListen(), newTrigger(), newMCP())
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
	root.SetArgs(doubleDashes(root, args))
	return root.ExecuteContext(ctx)
}

func runRoot(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	return unknownCommand(cmd, args[0])
}

// group returns a command that has other commands below it and does nothing itself. Its example is that of the first of them.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	example, _, _ := strings.Cut(commands[0].Example, "\n")
	cmd := &cobra.Command{Use: use, Short: short, Example: example, Args: cobra.ArbitraryArgs, RunE: runGroup}
	cmd.AddCommand(commands...)
	return cmd
}

// runGroup returns the error for a group without a command, or with one that it does not have.
func runGroup(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usageError(cmd, "say what to do:\n%s", commandList(cmd))
	}
	return unknownCommand(cmd, args[0])
}

// unknownCommand returns the error for a word that names no command. It suggests the nearest name.
func unknownCommand(cmd *cobra.Command, word string) error {
	near := suggestion("", nearestCommand(cmd, word))
	text := fmt.Sprintf("there is no command %q", word) + near
	if cmd.HasParent() {
		return usageError(cmd, "%s", then(text, "there are:\n"+commandList(cmd)))
	}
	if near == "" {
		text += "; soniq serve starts the platform"
	}
	return errors.New(then(text, "soniq help lists all commands"))
}

// nearestCommand returns the full name of the command below cmd whose name is nearest to the word, or "". Direct subcommands go first.
func nearestCommand(cmd *cobra.Command, word string) string {
	paths := map[string]string{}
	var names []string
	level := visibleCommands(cmd)
	for len(level) > 0 {
		var below []*cobra.Command
		for _, c := range level {
			if paths[c.Name()] == "" {
				paths[c.Name()] = c.CommandPath()
				names = append(names, c.Name())
			}
			below = append(below, visibleCommands(c)...)
		}
		if best := nearest(word, names); best != "" {
			return paths[best]
		}
		level = below
	}
	return ""
}

func visibleCommands(cmd *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(cmd.Commands()), func(c *cobra.Command) bool { return c.Hidden })
}

// name returns the full name of a command without the name of the program, such as calls list.
func name(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
}
