package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"soniq/internal/config"
	"soniq/internal/platform/access"
	"soniq/internal/platform/event"
)

// This file holds soniq completion, and the values that a shell completes.

// Values of flags. They are the published values of the API; completion_test.go compares them with it.
var (
	CallStatuses = []string{"queued", "ringing", "in_progress", "on_hold", "completed", "missed", "no_answer", "busy", "failed", "canceled"}
	Directions   = []string{"inbound", "outbound", "internal"}
	DeviceKinds  = []string{"desk_phone", "softphone", "ata", "mobile", "gateway"}
	PortStatuses = []string{"in_review", "scheduled", "completed", "rejected", "canceled"}
	Roles        = []string{"viewer", "agent", "supervisor", "admin", "owner"}
)

func EventKinds() (all []string) {
	for _, k := range event.Kinds() {
		all = append(all, string(k))
	}
	return all
}

func Scopes() []string {
	all := []string{"all"}
	for _, s := range access.All() {
		all = append(all, string(s))
	}
	return all
}

// settingValues are the fixed values of settings.
var settingValues = map[string][]string{
	"transcriber": {"builtin", "pocketsphinx", "off", "sherpa:"}, "summarizer": {"builtin", "off"}, "embedder": {"builtin", "off"},
	"voice": {"builtin", "off"}, "voice-agent": {"builtin", "off"}, "memory-index": {"auto", "process", "database"},
	"oauth-register": {"on", "off"}, "restored": {"live", "copy"},
	"log-level": {"debug", "info", "warn", "error"}, "log-format": {"text", "json"},
}

// settingFiles are the settings that name a file; settingFolders those that name a folder.
var (
	settingFiles   = []string{"config", "tls-cert", "tls-key", "plans", "stir-roots"}
	settingFolders = []string{"data", "sherpa"}
)

// AddSettings adds all settings to a command. Help and completion show those in shown, or all if shown is empty.
func AddSettings(cmd *cobra.Command, shown ...string) *config.Flags {
	cmd.Flags().SortFlags = false
	f := config.NewFlags(cmd.Flags(), shown...)
	for _, s := range config.Settings() {
		switch hidden := len(shown) > 0 && !slices.Contains(shown, s.Flag); {
		case hidden, slices.Contains(settingFiles, s.Flag):
		case slices.Contains(settingFolders, s.Flag):
			_ = cmd.MarkFlagDirname(s.Flag)
		default:
			CompleteFlag(cmd, s.Flag, settingValues[s.Flag]...)
		}
	}
	return f
}

// Offer returns the function that completes one of the values.
func Offer(values ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return startingWith(typed, values), cobra.ShellCompDirectiveNoFileComp
	}
}

func startingWith(typed string, values []string) []string {
	return slices.DeleteFunc(slices.Clone(values), func(v string) bool { return !strings.HasPrefix(v, typed) })
}

// CompleteFlag sets the values that a shell completes for a flag; without values it completes nothing.
func CompleteFlag(cmd *cobra.Command, flag string, values ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, Offer(values...))
}

// CompleteList sets the values of a flag that takes several with commas.
func CompleteList(cmd *cobra.Command, flag string, values ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, _ []string, typed string) (all []string, _ cobra.ShellCompDirective) {
		before := typed[:strings.LastIndex(typed, ",")+1]
		for _, v := range startingWith(typed[len(before):], values) {
			all = append(all, before+v)
		}
		return all, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
}
