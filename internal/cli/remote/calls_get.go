package remote

import "github.com/spf13/cobra"

import (
	"soniq/internal/cli/command"
)

type callsGetOptions struct{ client }

func newCallsGet() *cobra.Command {
	var o callsGetOptions
	cmd := &cobra.Command{
		Use: "get CALL", Short: "show one call", Example: "  soniq calls get call_…", Args: command.Words("CALL"),
		ValidArgsFunction: cobra.NoFileCompletions, RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	o.addFlags(cmd, "live")
	return cmd
}

func (o *callsGetOptions) run(cmd *cobra.Command, id string) error {
	done, err := o.connect(cmd)
	if err != nil {
		return err
	}
	defer done()
	return o.request(cmd.Context(), "GET", callPath(id), nil)
}
