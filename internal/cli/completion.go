package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"soniq/internal/config"
	"soniq/internal/platform/access"
	"soniq/internal/platform/event"
)

// This file holds soniq completion, and the values that a shell completes.

func newCompletion() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use: "completion SHELL", Short: "print the completion script of a shell: bash, zsh, fish or powershell",
		Example: "  source <(soniq completion bash)\n  soniq completion zsh > \"${fpath[1]}/_soniq\"",
		Args:    words("SHELL"), ValidArgsFunction: offer(shells...),
		RunE: func(cmd *cobra.Command, args []string) error {
			root, out := cmd.Root(), cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(out)
			}
			return fmt.Errorf("completion: %q is no shell with completion; there are %s", args[0], strings.Join(shells, ", "))
		},
	}
}

// Values of flags. They are the published values of the API; completion_test.go compares them with it.
var (
	callStatuses = []string{"queued", "ringing", "in_progress", "on_hold", "completed", "missed", "no_answer", "busy", "failed", "canceled"}
	directions   = []string{"inbound", "outbound", "internal"}
	deviceKinds  = []string{"desk_phone", "softphone", "ata", "mobile", "gateway"}
	portStatuses = []string{"in_review", "scheduled", "completed", "rejected", "canceled"}
	roles        = []string{"owner", "admin", "supervisor", "agent", "viewer"}
)

func eventKinds() (all []string) {
	for _, k := range event.Kinds() {
		all = append(all, string(k))
	}
	return all
}

func scopes() []string {
	all := []string{"all"}
	for _, s := range access.All() {
		all = append(all, string(s))
	}
	return all
}

// settingValues are the fixed values of settings.
var settingValues = map[string][]string{
	"transcriber": {"builtin", "pocketsphinx", "off", "sherpa:"}, "summarizer": {"builtin", "off"}, "embedder": {"builtin", "off"},
	"voice": {"builtin", "off"}, "voice-agent": {"builtin", "off"}, "memory-index": {"auto", "process", "database"}, "oauth-register": {"on", "off"},
	"log-level": {"debug", "info", "warn", "error"}, "log-format": {"text", "json"},
}

// settingFiles are the settings that name a file; settingFolders those that name a folder.
var (
	settingFiles   = []string{"config", "tls-cert", "tls-key", "plans", "stir-roots"}
	settingFolders = []string{"data", "sherpa"}
)

// addSettings adds all settings to a command. Help and completion show those in shown, or all if shown is empty.
func addSettings(cmd *cobra.Command, shown ...string) *config.Flags {
	cmd.Flags().SortFlags = false
	f := config.NewFlags(cmd.Flags(), shown...)
	for _, s := range config.Settings() {
		switch hidden := len(shown) > 0 && !slices.Contains(shown, s.Flag); {
		case hidden, slices.Contains(settingFiles, s.Flag):
		case slices.Contains(settingFolders, s.Flag):
			_ = cmd.MarkFlagDirname(s.Flag)
		default:
			completeFlag(cmd, s.Flag, settingValues[s.Flag]...)
		}
	}
	return f
}

// offer returns the function that completes one of the values.
func offer(values ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return startingWith(typed, values), cobra.ShellCompDirectiveNoFileComp
	}
}

func startingWith(typed string, values []string) []string {
	return slices.DeleteFunc(slices.Clone(values), func(v string) bool { return !strings.HasPrefix(v, typed) })
}

// completeFlag sets the values that a shell completes for a flag; without values it completes nothing.
func completeFlag(cmd *cobra.Command, flag string, values ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, offer(values...))
}

// completeList sets the values of a flag that takes several with commas.
func completeList(cmd *cobra.Command, flag string, values ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, _ []string, typed string) (all []string, _ cobra.ShellCompDirective) {
		before := typed[:strings.LastIndex(typed, ",")+1]
		for _, v := range startingWith(typed[len(before):], values) {
			all = append(all, before+v)
		}
		return all, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
}
