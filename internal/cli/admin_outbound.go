package cli

import (
	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
	"soniq/internal/config"
	"soniq/internal/control"
)

type outboundOptions struct {
	settings *config.Flags
	request  control.OutboundRequest
}

// newOutbound returns the command that stops or starts outbound calls, or shows whether they are stopped. All accept --calls, which has an
// effect with stop only.
func newOutbound(do string) *cobra.Command {
	o := outboundOptions{request: control.OutboundRequest{Do: do}}
	cmd := &cobra.Command{
		Use: do, Short: map[string]string{"stop": "stop outbound calls of all organisations, except emergency calls",
			"start": "allow outbound calls again", "status": "show whether outbound calls are stopped"}[do],
		Example: "  soniq admin outbound " + do, Args: command.Words(), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	cmd.Flags().BoolVar(&o.request.Calls, "calls", false, "also end outbound calls in progress, except emergency calls")
	if do == "stop" {
		cmd.Example += " --calls"
	} else {
		_ = cmd.Flags().MarkHidden("calls")
	}
	o.settings = command.AddSettings(cmd, dataFolder...)
	return cmd
}

func (o *outboundOptions) run(cmd *cobra.Command) error {
	c, err := o.settings.Load()
	if err != nil {
		return err
	}
	return manage(cmd.Context(), c, cmd.OutOrStdout(), "outbound", o.request)
}
