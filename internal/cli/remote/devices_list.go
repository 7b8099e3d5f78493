package remote

import (
	"net/url"

	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
)

type devicesListOptions struct{ client }

func newDevicesList() *cobra.Command {
	var o devicesListOptions
	cmd := &cobra.Command{
		Use: "list", Short: "list the phones of the organisation and whether they are registered", Example: "  soniq devices list",
		Args: command.Words(), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.addFlags(cmd, "live")
	return cmd
}

func (o *devicesListOptions) run(cmd *cobra.Command) error {
	done, err := o.connect(cmd)
	if err != nil {
		return err
	}
	defer done()
	return o.printList(cmd.Context(), "/devices", url.Values{}, 0, "NAME KIND MAC PROVISIONING REGISTRATION ID", deviceRow)
}
