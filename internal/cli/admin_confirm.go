package cli

import (
	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
	"soniq/internal/config"
	"soniq/internal/control"
)

type trunksConfirmOptions struct {
	settings *config.Flags
	request  control.NetworkRequest
}

func newTrunksConfirm() *cobra.Command {
	var o trunksConfirmOptions
	cmd := &cobra.Command{
		Use: "confirm", Short: "confirm that calls of an organisation come from a network",
		Long: "Its trunks may then list the network although trunks of other organisations do. The dialled number decides whose call it is.\n" +
			"Sources in a confirmed network are never banned.",
		Example: "  soniq admin trunks confirm --org org_… --network 192.0.2.0/24",
		Args:    command.Words(), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	cmd.Flags().StringVar(&o.request.Org, "org", "", "id of the organisation")
	cmd.Flags().StringVar(&o.request.Network, "network", "", "network or address of the carrier, such as 192.0.2.0/24")
	for _, free := range []string{"org", "network"} {
		command.CompleteFlag(cmd, free)
	}
	o.settings = command.AddSettings(cmd, dataFolder...)
	return cmd
}

func (o *trunksConfirmOptions) run(cmd *cobra.Command) error {
	c, err := o.settings.Load()
	if err != nil {
		return err
	}
	if o.request.Org == "" || o.request.Network == "" {
		return command.UsageErrorf(cmd, "--org and --network are needed")
	}
	return manage(cmd.Context(), c, cmd.OutOrStdout(), "network", o.request)
}

type numbersConfirmOptions struct {
	settings *config.Flags
	request  control.NumberRequest
}

func newNumbersConfirm() *cobra.Command {
	var o numbersConfirmOptions
	cmd := &cobra.Command{
		Use: "confirm", Short: "confirm that a number belongs to an organisation (an operator's command, on the data folder)",
		Long: "The number is in use then. Where several organisations entered it on trunks of the same carrier, its calls are for the one\n" +
			"that was confirmed last.",
		Example: "  soniq numbers confirm --org org_… --number +442079460018",
		Args:    command.Words(), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	cmd.Flags().StringVar(&o.request.Org, "org", "", "id of the organisation")
	cmd.Flags().StringVar(&o.request.Number, "number", "", "the number, such as +442079460018")
	for _, free := range []string{"org", "number"} {
		command.CompleteFlag(cmd, free)
	}
	o.settings = command.AddSettings(cmd, dataFolder...)
	return cmd
}

func (o *numbersConfirmOptions) run(cmd *cobra.Command) error {
	c, err := o.settings.Load()
	if err != nil {
		return err
	}
	if o.request.Org == "" || o.request.Number == "" {
		return command.UsageErrorf(cmd, "--org and --number are needed")
	}
	return manage(cmd.Context(), c, cmd.OutOrStdout(), "number", o.request)
}
