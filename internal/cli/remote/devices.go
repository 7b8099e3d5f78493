package remote

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
	"soniq/internal/telephony/provisioning"
)

func NewDevices() *cobra.Command {
	return command.EndsWithUsage(command.Group("devices", "phones, and the address from which they fetch their configuration",
		newDevicesList(), newDevicesAdd(), newDevicesAddress(), newDevicesResync()))
}

func deviceRow(raw json.RawMessage) ([]string, error) {
	var d struct {
		ID, Name, Kind, MAC        string
		Provisioning, Registration struct{ Status string }
	}
	err := json.Unmarshal(raw, &d)
	return []string{d.Name, d.Kind, d.MAC, d.Provisioning.Status, d.Registration.Status, d.ID}, err
}

// printAddress prints the provisioning address in a response. The API returns it only once.
func (c *client) printAddress(raw json.RawMessage, qr bool) error {
	if c.json {
		return c.printJSON(raw)
	}
	var d struct {
		ID      string
		Address string `json:"provisioning_url"`
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return fmt.Errorf("the answer cannot be read: %w", err)
	}
	fmt.Fprintf(c.note, "%s fetches its configuration here; the address is shown only now, and open for 24 hours:\n", d.ID)
	fmt.Fprintln(c.out, d.Address)
	if !qr || d.Address == "" {
		return nil
	}
	code, err := provisioning.NewQRCode(d.Address)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(c.out, code.Text())
	return err
}
