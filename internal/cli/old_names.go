package cli

import "github.com/spf13/cobra"

// oldNames returns the commands under their names of earlier versions: org, key, users, outbound, stock, port and hearing. They are hidden,
// and do what the commands with the present names do.
func oldNames() []*cobra.Command {
	all := []*cobra.Command{
		group("org", "an earlier name of admin orgs", newOrgsCreate()),
		group("key", "an earlier name of admin keys", newKeysCreate()),
		group("users", "an earlier name of admin users", newUsersAdd(), newUsersPassword()),
		group("outbound", "an earlier name of admin outbound", newOutbound("stop"), newOutbound("start"), newOutbound("status")),
		group("stock", "an earlier name of numbers", oldName("add", newNumbersAddBlock())),
		group("port", "an earlier name of numbers", oldName("set", newNumbersPortStatus())),
		group("hearing", "an earlier name of speech-model", newSpeechModelInstall(), newSpeechModelStatus(), newSpeechModelPackages()),
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
