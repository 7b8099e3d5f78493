// Package command has the parts that all commands share: groups, help, usage errors, completion and exit codes.
package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Group returns a command that has other commands below it and does nothing itself. Its example is that of the first of them.
func Group(use, short string, commands ...*cobra.Command) *cobra.Command {
	example, _, _ := strings.Cut(commands[0].Example, "\n")
	cmd := &cobra.Command{Use: use, Short: short, Example: example, Args: cobra.ArbitraryArgs, RunE: runGroup}
	cmd.AddCommand(commands...)
	return cmd
}

// runGroup returns the error for a group without a command, or with one that it does not have.
func runGroup(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return UsageErrorf(cmd, "say what to do:\n%s", commandList(cmd))
	}
	return UnknownCommand(cmd, args[0])
}

// UnknownCommand returns the error for a word that names no command. It suggests the nearest name.
func UnknownCommand(cmd *cobra.Command, word string) error {
	near := Suggestion("", nearestCommand(cmd, word))
	text := fmt.Sprintf("there is no command %q", word) + near
	if cmd.HasParent() {
		return UsageErrorf(cmd, "%s", WithRemedy(text, "there are:\n"+commandList(cmd)))
	}
	if near == "" {
		text += "; soniq serve starts the platform"
	}
	return errors.New(WithRemedy(text, "soniq help lists all commands"))
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
		if best := Nearest(word, names); best != "" {
			return paths[best]
		}
		level = below
	}
	return ""
}

func visibleCommands(cmd *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(cmd.Commands()), func(c *cobra.Command) bool { return c.Hidden })
}

// NameOf returns the full name of a command without the name of the program, such as calls list.
func NameOf(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
}
