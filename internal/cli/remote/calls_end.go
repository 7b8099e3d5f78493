package remote

import "github.com/spf13/cobra"

import (
	"soniq/internal/cli/command"
)

type callsEndOptions struct {
	client
	reason string
}

func newCallsEnd() *cobra.Command {
	var o callsEndOptions
	cmd := &cobra.Command{
		Use: "end CALL", Short: "hang up a call", Example: "  soniq calls end call_… --reason 'test is over'",
		Args: command.Words("CALL"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	cmd.Flags().StringVar(&o.reason, "reason", "", "reason, for the record of the call")
	command.CompleteFlag(cmd, "reason")
	o.addFlags(cmd, "live")
	return cmd
}

func (o *callsEndOptions) run(cmd *cobra.Command, id string) error {
	done, err := o.connect(cmd)
	if err != nil {
		return err
	}
	defer done()
	body := map[string]any{}
	if o.reason != "" {
		body["reason"] = o.reason
	}
	return o.request(cmd.Context(), "POST", callPath(id)+"/end", body)
}
