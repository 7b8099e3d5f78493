package cli

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"strings"

	"soniq/internal/telephony/provisioning"
)

func devicesCommand(ctx context.Context, args []string) error {
	return choose(ctx, "devices", args, []sub{
		{"list", "the organisation's phones, and whether they are registered", devicesList},
		{"add", "add --user U [--vendor V] [--mac M] [--qr]: add a phone, print the address it fetches its configuration from", devicesAdd},
		{"address", "address DEVICE [--qr]: give a phone a new address, in place of the one it had", devicesAddress},
		{"resync", "resync DEVICE [--reboot]: have a phone fetch its configuration again", devicesResync},
	})
}

func devicesList(ctx context.Context, args []string) error {
	var r remote
	words, err := r.parse("devices list", "", args, "live", nil)
	if err == nil {
		err = wants("devices list", words)
	}
	if err != nil {
		return err
	}
	done, err := r.connect(ctx)
	if err != nil {
		return err
	}
	defer done()
	return r.list(ctx, "/devices", url.Values{}, most(0), "NAME KIND MAC PROVISIONING REGISTRATION ID", deviceRow)
}

func deviceRow(raw json.RawMessage) ([]string, error) {
	var d struct {
		ID, Name, Kind, MAC        string
		Provisioning, Registration struct{ Status string }
	}
	err := json.Unmarshal(raw, &d)
	return []string{d.Name, d.Kind, d.MAC, d.Provisioning.Status, d.Registration.Status, d.ID}, err
}

// newDevice is what devices add asks for.
type newDevice struct {
	user, name, kind, vendor, template, mac, transport, srtp string
	qr                                                       bool
}

func (d *newDevice) flags(fs *flag.FlagSet) {
	fs.StringVar(&d.user, "user", "", "whose phone: id, extension or e-mail address")
	fs.StringVar(&d.name, "name", "Phone", "what it is called")
	fs.StringVar(&d.kind, "kind", "", "desk_phone, softphone, ata, mobile or gateway; a desk phone where there is a MAC address, else a softphone")
	fs.StringVar(&d.vendor, "vendor", "", "its maker, such as Yealink")
	fs.StringVar(&d.template, "template", "", "how its configuration is written: "+strings.Join(provisioning.Templates(), ", "))
	fs.StringVar(&d.mac, "mac", "", "its MAC address; the first phone to fetch tells its own otherwise")
	fs.StringVar(&d.transport, "transport", "udp", "udp, tcp or tls")
	fs.StringVar(&d.srtp, "srtp", "off", "off, preferred or required")
	fs.BoolVar(&d.qr, "qr", false, "print the address as a QR code too")
}

func devicesAdd(ctx context.Context, args []string) error {
	var r remote
	var d newDevice
	words, err := r.parse("devices add", "", args, "live", d.flags)
	if err == nil {
		err = wants("devices add", words)
	}
	if err == nil && d.user == "" {
		err = &failure{exitUsage, errors.New("devices add: --user is missing: id, extension or e-mail address")}
	}
	if err != nil {
		return err
	}
	done, err := r.connect(ctx)
	if err != nil {
		return err
	}
	defer done()
	body, err := d.body(ctx, &r)
	if err != nil {
		return err
	}
	var raw json.RawMessage
	if err := r.do(ctx, "POST", "/devices", body, &raw); err != nil {
		return err
	}
	return r.address(raw, d.qr)
}

func (d *newDevice) body(ctx context.Context, r *remote) (map[string]any, error) {
	user, err := r.user(ctx, d.user)
	if d.kind == "" {
		d.kind = map[bool]string{true: "desk_phone", false: "softphone"}[d.mac != ""]
	}
	body := map[string]any{"user_id": user, "name": d.name, "kind": d.kind, "srtp": d.srtp, "sip": map[string]any{"transport": d.transport}}
	for name, value := range map[string]string{"vendor": d.vendor, "template_id": d.template, "mac": d.mac} {
		if value != "" {
			body[name] = value
		}
	}
	return body, err
}

// address prints the address in an answer, which is told this once.
func (r *remote) address(raw json.RawMessage, qr bool) error {
	if r.json {
		return r.line(raw)
	}
	var d struct {
		ID      string
		Address string `json:"provisioning_url"`
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return fmt.Errorf("the answer cannot be read: %w", err)
	}
	fmt.Fprintf(r.note, "%s fetches its configuration here; the address is shown only now, and open for 24 hours:\n", d.ID)
	fmt.Fprintln(r.out, d.Address)
	if !qr || d.Address == "" {
		return nil
	}
	code, err := provisioning.NewQRCode(d.Address)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(r.out, code.Text())
	return err
}

func devicesAddress(ctx context.Context, args []string) error {
	var qr bool
	var r remote
	words, err := r.parse("devices address", "DEVICE", args, "live", func(fs *flag.FlagSet) {
		fs.BoolVar(&qr, "qr", false, "print the address as a QR code too")
	})
	if err == nil {
		err = wants("devices address", words, "DEVICE")
	}
	if err != nil {
		return err
	}
	done, err := r.connect(ctx)
	if err != nil {
		return err
	}
	defer done()
	var raw json.RawMessage
	err = r.do(ctx, "PATCH", "/devices/"+url.PathEscape(words[0]), map[string]any{"provisioning": map[string]any{"status": "pending"}}, &raw)
	if err != nil {
		return err
	}
	return r.address(raw, qr)
}

func devicesResync(ctx context.Context, args []string) error {
	var reboot bool
	var r remote
	words, err := r.parse("devices resync", "DEVICE", args, "live", func(fs *flag.FlagSet) {
		fs.BoolVar(&reboot, "reboot", false, "start again, for phones that know that")
	})
	if err == nil {
		err = wants("devices resync", words, "DEVICE")
	}
	if err != nil {
		return err
	}
	done, err := r.connect(ctx)
	if err != nil {
		return err
	}
	defer done()
	var raw json.RawMessage
	if err := r.do(ctx, "POST", "/devices/"+url.PathEscape(words[0])+"/resync", map[string]any{"reboot": reboot}, &raw); err != nil {
		return err
	}
	return r.record(raw)
}
