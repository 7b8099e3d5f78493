package remote

import (
	"net/url"

	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
)

type devicesResyncOptions struct {
	client
	reboot bool
}

func newDevicesResync() *cobra.Command {
	var o devicesResyncOptions
	cmd := &cobra.Command{
		Use: "resync DEVICE", Short: "make a phone fetch its configuration again", Example: "  soniq devices resync dev_… --reboot",
		Args: command.Words("DEVICE"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	cmd.Flags().BoolVar(&o.reboot, "reboot", false, "restart the phone, if it supports this")
	o.addFlags(cmd, "live")
	return cmd
}

func (o *devicesResyncOptions) run(cmd *cobra.Command, device string) error {
	done, err := o.connect(cmd)
	if err != nil {
		return err
	}
	defer done()
	return o.request(cmd.Context(), "POST", "/devices/"+url.PathEscape(device)+"/resync", map[string]any{"reboot": o.reboot})
}
