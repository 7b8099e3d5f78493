package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
)

func newCompletion() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use: "completion SHELL", Short: "print the completion script of a shell: bash, zsh, fish or powershell",
		Example: "  source <(soniq completion bash)\n  soniq completion zsh > \"${fpath[1]}/_soniq\"",
		Args:    command.Words("SHELL"), ValidArgsFunction: command.Offer(shells...),
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
