package cli

import "github.com/spf13/cobra"

import (
	"soniq/internal/cli/command"
)

// oldNames returns the commands under their names of earlier versions: org, key, users, outbound, stock, port and hearing. They are hidden,
// and do what the commands with the present names do.
func oldNames() []*cobra.Command {
	all := []*cobra.Command{
		command.Group("org", "an earlier name of admin orgs", newOrgsCreate()),
		command.Group("key", "an earlier name of admin keys", newKeysCreate()),
		command.Group("users", "an earlier name of admin users", newUsersAdd(), newUsersPassword()),
		command.Group("outbound", "an earlier name of admin outbound", newOutbound("stop"), newOutbound("start"), newOutbound("status")),
		command.Group("stock", "an earlier name of numbers", oldName("add", newNumbersAddBlock())),
		command.Group("port", "an earlier name of numbers", oldName("set", newNumbersPortStatus())),
		command.Group("hearing", "an earlier name of speech-model", newSpeechModelInstall(), newSpeechModelStatus(),
			newSpeechModelPackages()),
	}
	for _, c := range all {
		c.Hidden = true
	}
	return all
}

// oldName gives a command another name.
func oldName(use string, cmd *cobra.Command) *cobra.Command {
	cmd.Use = use
	return cmd
}
