package remote

import (
	"encoding/json"
	"net/url"

	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
)

type devicesAddressOptions struct {
	client
	qr bool
}

func newDevicesAddress() *cobra.Command {
	var o devicesAddressOptions
	cmd := &cobra.Command{
		Use: "address DEVICE", Short: "replace the address from which a phone fetches its configuration, and print the new one",
		Example: "  soniq devices address dev_… --qr", Args: command.Words("DEVICE"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	cmd.Flags().BoolVar(&o.qr, "qr", false, "print the address as a QR code too")
	o.addFlags(cmd, "live")
	return cmd
}

func (o *devicesAddressOptions) run(cmd *cobra.Command, device string) error {
	done, err := o.connect(cmd)
	if err != nil {
		return err
	}
	defer done()
	var raw json.RawMessage
	body := map[string]any{"provisioning": map[string]any{"status": "pending"}}
	if err := o.do(cmd.Context(), "PATCH", "/devices/"+url.PathEscape(device), body, &raw); err != nil {
		return err
	}
	return o.printAddress(raw, o.qr)
}
