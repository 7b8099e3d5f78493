package remote

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
	"soniq/internal/telephony/provisioning"
)

type devicesAddOptions struct {
	client
	user, name, kind, vendor, template, mac, transport, srtp string
	qr                                                       bool
}

func newDevicesAdd() *cobra.Command {
	var o devicesAddOptions
	cmd := &cobra.Command{
		Use: "add", Short: "add a phone and print the address from which it fetches its configuration",
		Example: "  soniq devices add --user 101 --vendor Yealink --mac 00:15:65:ab:cd:ef\n  soniq devices add --user ada@example.com --template linphone --qr",
		Args:    command.Words(), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&o.user, "user", "", "user of the phone: id, extension or e-mail address")
	f.StringVar(&o.name, "name", "Phone", "name of the phone")
	f.StringVar(&o.kind, "kind", "", "desk_phone, softphone, ata, mobile or gateway; desk_phone if there is a MAC address, else softphone")
	f.StringVar(&o.vendor, "vendor", "", "its maker, such as Yealink")
	f.StringVar(&o.template, "template", "", "form of its configuration: "+strings.Join(provisioning.Catalog{}.Templates(), ", "))
	f.StringVar(&o.mac, "mac", "", "its MAC address; unless given, the address of the first phone that fetches the configuration")
	f.StringVar(&o.transport, "transport", "udp", "udp, tcp or tls")
	f.StringVar(&o.srtp, "srtp", "off", "off, preferred or required")
	f.BoolVar(&o.qr, "qr", false, "print the address as a QR code too")
	for _, free := range []string{"user", "name", "vendor", "mac"} {
		command.CompleteFlag(cmd, free)
	}
	command.CompleteFlag(cmd, "kind", command.DeviceKinds...)
	command.CompleteFlag(cmd, "template", provisioning.Catalog{}.Templates()...)
	command.CompleteFlag(cmd, "transport", "udp", "tcp", "tls")
	command.CompleteFlag(cmd, "srtp", "off", "preferred", "required")
	o.addFlags(cmd, "live")
	return cmd
}

func (o *devicesAddOptions) run(cmd *cobra.Command) error {
	if o.user == "" {
		return command.UsageErrorf(cmd, "--user is missing: id, extension or e-mail address")
	}
	done, err := o.connect(cmd)
	if err != nil {
		return err
	}
	defer done()
	ctx := cmd.Context()
	body, err := o.body(ctx)
	if err != nil {
		return err
	}
	var raw json.RawMessage
	if err := o.do(ctx, "POST", "/devices", body, &raw); err != nil {
		return err
	}
	return o.printAddress(raw, o.qr)
}

// body returns the body of the request that creates the device.
func (o *devicesAddOptions) body(ctx context.Context) (map[string]any, error) {
	user, err := o.userID(ctx, o.user)
	if o.kind == "" {
		o.kind = map[bool]string{true: "desk_phone", false: "softphone"}[o.mac != ""]
	}
	body := map[string]any{"user_id": user, "name": o.name, "kind": o.kind, "srtp": o.srtp, "sip": map[string]any{"transport": o.transport}}
	for name, value := range map[string]string{"vendor": o.vendor, "template_id": o.template, "mac": o.mac} {
		if value != "" {
			body[name] = value
		}
	}
	return body, err
}
