package command

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"soniq/internal/config"
)

// This file prints the help of every command in one form: summary, usage, example, commands below it, flags.

// ConnectionAnnotation is the annotation of the flags with which a command finds the server and its key.
const ConnectionAnnotation = "soniq_connection"

func NewHelp() *cobra.Command {
	return &cobra.Command{Use: "help [COMMAND]", Short: "show the help of a command", Example: "  soniq help calls dial",
		Args: cobra.ArbitraryArgs, ValidArgsFunction: completeCommands, RunE: func(cmd *cobra.Command, args []string) error {
			target, rest, err := cmd.Root().Find(args)
			if err != nil || target.DisableFlagParsing {
				return UnknownCommand(cmd.Root(), args[0])
			}
			if len(rest) > 0 {
				return UnknownCommand(target, rest[0])
			}
			target.InitDefaultHelpFlag()
			return target.Help()
		}}
}

func completeCommands(cmd *cobra.Command, args []string, typed string) (names []string, _ cobra.ShellCompDirective) {
	target, rest, err := cmd.Root().Find(args)
	if err == nil && len(rest) == 0 {
		for _, c := range visibleCommands(target) {
			if strings.HasPrefix(c.Name(), typed) {
				names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
			}
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func PrintHelp(cmd *cobra.Command, _ []string) { WriteHelp(cmd.OutOrStdout(), cmd) }

// WriteHelp writes the help of a command. A hidden group of one command has the help of that command.
func WriteHelp(w io.Writer, cmd *cobra.Command) {
	if all := visibleCommands(cmd); cmd.Hidden && len(all) == 1 {
		cmd = all[0]
	}
	fmt.Fprintf(w, "%s: %s\n", cmd.CommandPath(), cmd.Short)
	if cmd.Long != "" {
		fmt.Fprintf(w, "\n%s\n", cmd.Long)
	}
	fmt.Fprintf(w, "\nusage: %s\n", usageLine(cmd))
	if cmd.Example != "" {
		fmt.Fprintf(w, "\nexample:\n%s\n", cmd.Example)
	}
	if len(cmd.Groups()) > 0 {
		writeGroups(w, cmd)
	} else if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\ncommands:\n%s\n", commandList(cmd))
	}
	writeFlags(w, cmd, "flags", func(f *pflag.Flag) bool { return f.Annotations[ConnectionAnnotation] == nil })
	writeFlags(w, cmd, "connection", func(f *pflag.Flag) bool { return f.Annotations[ConnectionAnnotation] != nil })
	if !cmd.HasParent() {
		fmt.Fprint(w, "\nsoniq help COMMAND lists its flags. Start with: soniq demo\n"+
			"Commands for a running soniq need an API key (--key or "+KeyVariable+
			"). They end with 0, 1 refused, 2 wrong usage, 3 no access, 4 not found,\n"+
			"5 not reached. All other commands end with 0 or 1.\n")
	}
}

// usageLine returns the words of a command: its name, its own words, flags.
func usageLine(cmd *cobra.Command) string {
	text := cmd.CommandPath()
	if cmd.HasAvailableSubCommands() {
		text += map[bool]string{true: " [COMMAND]", false: " COMMAND"}[hasOwnFlags(cmd)]
	}
	_, own, _ := strings.Cut(cmd.Use, " ")
	if own != "" {
		text += " " + own
	}
	if hasOwnFlags(cmd) {
		text += " [flags]"
	}
	return text
}

// hasOwnFlags reports whether a command has visible flags besides --help.
func hasOwnFlags(cmd *cobra.Command) (any bool) {
	cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) { any = any || !f.Hidden && f.Name != "help" && f.Name != "version" })
	return any
}

// commandList returns the commands below a command, a line for each.
func commandList(cmd *cobra.Command) string {
	var lines []string
	for _, c := range visibleCommands(cmd) {
		lines = append(lines, fmt.Sprintf("  %-28s %s", c.CommandPath(), c.Short))
	}
	return strings.Join(lines, "\n")
}

func writeGroups(w io.Writer, cmd *cobra.Command) {
	for _, g := range append(cmd.Groups(), &cobra.Group{Title: "other commands"}) {
		fmt.Fprintf(w, "\n%s:\n", g.Title)
		for _, c := range visibleCommands(cmd) {
			if c.GroupID == g.ID {
				fmt.Fprintf(w, "  %-20s %s\n", c.CommandPath(), c.Short)
			}
		}
	}
}

func writeFlags(w io.Writer, cmd *cobra.Command, title string, in func(*pflag.Flag) bool) {
	cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" || f.Name == "version" || !in(f) {
			return
		}
		if title != "" {
			fmt.Fprintf(w, "\n%s:\n", title)
			title = ""
		}
		fmt.Fprintf(w, "  --%-18s %s\n", f.Name, FlagText(f))
	})
}

// FlagText returns the help of a flag with its environment variable and default.
func FlagText(f *pflag.Flag) string {
	notes := append([]string{}, f.Annotations[config.EnvAnnotation]...)
	if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" && f.DefValue != "[]" {
		notes = append(notes, "default "+f.DefValue)
	}
	if len(notes) == 0 {
		return f.Usage
	}
	return f.Usage + " (" + strings.Join(notes, ", ") + ")"
}
