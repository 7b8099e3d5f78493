package cli

import (
	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
	"soniq/internal/config"
	"soniq/internal/control"
)

type numbersAddBlockOptions struct {
	settings *config.Flags
	request  control.NumberBlockRequest
}

func newNumbersAddBlock() *cobra.Command {
	var o numbersAddBlockOptions
	cmd := &cobra.Command{
		Use: "add-block", Short: "add a block of free numbers that a carrier gave (an operator's command, on the data folder)",
		Long:    "numbers.search finds the free numbers of the block, and numbers.create takes them.",
		Example: "  soniq numbers add-block --org org_… --trunk trk_… --from +442079460100 --to +442079460199",
		Args:    command.Words(), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&o.request.Org, "org", "", "id of the organisation")
	f.StringVar(&o.request.Trunk, "trunk", "", "id of the trunk over which calls to the numbers come")
	f.StringVar(&o.request.From, "from", "", "first number of the block, such as +442079460100")
	f.StringVar(&o.request.To, "to", "", "last number; the first unless given")
	for _, free := range []string{"org", "trunk", "from", "to"} {
		command.CompleteFlag(cmd, free)
	}
	o.settings = command.AddSettings(cmd, dataFolder...)
	return cmd
}

func (o *numbersAddBlockOptions) run(cmd *cobra.Command) error {
	c, err := o.settings.Load()
	if err != nil {
		return err
	}
	if o.request.To == "" {
		o.request.To = o.request.From
	}
	if o.request.Org == "" || o.request.Trunk == "" || o.request.From == "" {
		return command.UsageErrorf(cmd, "--org, --trunk and --from are needed")
	}
	return manage(cmd.Context(), c, cmd.OutOrStdout(), "stock.add", o.request)
}
