package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// This file checks how a command was typed: its words and its flags. Errors suggest the nearest name.

// UsageExit is the annotation of commands whose wrong usage ends with 2. Commands of the operator end with 1.
const UsageExit = "soniq_usage_exit"

// EndsWithUsage marks a command: wrong usage ends with 2.
func EndsWithUsage(cmd *cobra.Command) *cobra.Command {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[UsageExit] = "2"
	return cmd
}

// UsageErrorf returns an error about how the command was typed. It begins with the name of the command.
func UsageErrorf(cmd *cobra.Command, format string, args ...any) error {
	code := ExitFailed
	if cmd.Annotations[UsageExit] != "" {
		code = ExitUsage
	}
	err := fmt.Errorf(format, args...)
	if cmd.HasParent() {
		err = fmt.Errorf("%s: %w", NameOf(cmd), err)
	}
	return &failure{code, err}
}

// Words returns the check for the words after a command, one for each name. A name in brackets is optional.
func Words(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > len(names) {
			return tooMany(cmd, args[len(names)])
		}
		if len(args) < len(names) && !strings.HasPrefix(names[len(args)], "[") {
			return UsageErrorf(cmd, "say which %s: %s %s", strings.ToLower(names[len(args)]), cmd.CommandPath(), strings.Join(names, " "))
		}
		return nil
	}
}

func tooMany(cmd *cobra.Command, word string) error {
	text := fmt.Sprintf("%q is one word too many", word) + Suggestion("", nearestCommand(cmd, word))
	return UsageErrorf(cmd, "%s", WithRemedy(text, cmd.CommandPath()+" --help shows the usage"))
}

// valueKinds describe the types of pflag whose errors are those of strconv.
var valueKinds = map[string]string{"int": "a whole number", "bool": "true or false"}

// FlagError returns the error for a flag that cannot be used.
func FlagError(cmd *cobra.Command, err error) error {
	if all := cmd.Flags().Args(); cmd.HasSubCommands() && len(all) > 0 {
		return cmd.RunE(cmd, all) // the word before the flag is wrong
	}
	var unknown *pflag.NotExistError
	var without *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	text := err.Error()
	switch {
	case errors.As(err, &unknown):
		dashes := map[bool]string{true: "--", false: "-"}[unknown.GetSpecifiedShortnames() == ""]
		text = "there is no flag " + dashes + unknown.GetSpecifiedName() + Suggestion("--", nearestFlag(cmd, unknown.GetSpecifiedName()))
	case errors.As(err, &without):
		text = "--" + without.GetFlag().Name + " needs a value"
	case errors.As(err, &invalid):
		reason := errors.Unwrap(invalid).Error()
		if kind := valueKinds[invalid.GetFlag().Value.Type()]; kind != "" {
			reason = "must be " + kind
		}
		text = fmt.Sprintf("--%s %q is not valid: it %s", invalid.GetFlag().Name, invalid.GetValue(), reason)
	}
	return UsageErrorf(cmd, "%s", WithRemedy(text, cmd.CommandPath()+" --help lists the flags"))
}

func nearestFlag(cmd *cobra.Command, word string) string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return Nearest(word, names)
}

// Suggestion returns the question for the nearest name, or "" if there is none.
func Suggestion(dashes, name string) string {
	if name == "" {
		return ""
	}
	return "; did you mean " + dashes + name + "?"
}

// WithRemedy returns a text and the remedy behind it.
func WithRemedy(text, remedy string) string {
	if strings.HasSuffix(text, "?") {
		return text + " " + remedy
	}
	return text + "; " + remedy
}

// Nearest returns the name with the fewest edits from the word, or "" if all differ in more than a third of their letters.
func Nearest(word string, names []string) string {
	best, least := "", 0
	for _, n := range names {
		d := edits(strings.ToLower(word), n)
		if strings.HasPrefix(n, word) && len(word) > 2 {
			d = 1
		}
		if d <= max(len(word), len(n))/3 && (best == "" || d < least) {
			best, least = n, d
		}
	}
	return best
}

// edits returns the number of letters to insert, delete, replace or swap with their neighbour to make b of a.
func edits(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			replaced := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, replaced)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

// DoubleDashes returns the arguments with two dashes before long flags that were typed with one, such as -data. Earlier versions accepted
// both. Values of flags, words after -- and arguments of workers stay as they are.
func DoubleDashes(root *cobra.Command, args []string) []string {
	out := slices.Clone(args)
	if len(out) == 0 || strings.HasPrefix(out[0], cobra.ShellCompRequestCmd) {
		return append([]string{}, out...)
	}
	cmd, _, err := root.Find(out)
	if err != nil || cmd.DisableFlagParsing {
		return out
	}
	for i := 0; i < len(out) && out[i] != "--"; i++ {
		if !strings.HasPrefix(out[i], "-") || len(out[i]) < 3 {
			continue
		}
		if out[i][1] != '-' {
			out[i] = "-" + out[i]
		}
		flag, _, valued := strings.Cut(out[i][2:], "=")
		if f := cmd.Flags().Lookup(flag); f != nil && !valued && f.NoOptDefVal == "" {
			i++
		}
	}
	return out
}
