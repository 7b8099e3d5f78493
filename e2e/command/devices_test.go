package command_test

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"soniq/e2e/rig"
)

// TestDevices_AddAndProvision adds a phone, shows its provisioning address as a QR code, and replaces the address.
// Only the new address is valid.
func TestDevices_AddAndProvision(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Flags: []string{"--transcriber", "off", "--https", "127.0.0.1:0"}})
	c := s.Org("live")
	env, ada := environment(c), c.AddUser("Ada")
	soniq(t, env, "devices", "add").refusedWith(t, 2, "--user is missing")
	soniq(t, env, "devices", "address", "dev_none").refusedWith(t, 4, "no such device")
	soniq(t, env, "devices", "add", "--user", ada.Extension, "--template", "acme").refusedWith(t, 1, "template_id", "yealink")
	added := soniq(t, env, "devices", "add", "--user", ada.Extension, "--vendor", "Yealink", "--mac", "001565abcdef", "--qr")
	first, code, _ := strings.Cut(added.out, "\n")
	if added.code != 0 || !strings.HasPrefix(first, "https://127.0.0.1:") || strings.Count(code, "█") < 100 {
		t.Fatalf("add: %+v", added)
	}
	id, _, _ := strings.Cut(added.wrong, " ")
	soniq(t, env, "devices", "resync", id).refusedWith(t, 1, "not registered")
	says(t, soniq(t, env, "devices", "list").out, "00:15:65:ab:cd:ef", "desk_phone", "pending", id)
	moved := soniq(t, env, "devices", "address", id, "--json")
	var d struct {
		Address string `json:"provisioning_url"`
	}
	if err := json.Unmarshal([]byte(moved.out), &d); err != nil || d.Address == first {
		t.Fatalf("address: %v %+v", err, moved)
	}
	if old, new := fileAt(t, first), fileAt(t, d.Address); old != 404 || new != 200 {
		t.Errorf("the old address answers %d, the new one %d", old, new)
	}
	says(t, soniq(t, env, "devices", "list").out, "served", id)
}

// fileAt requests the file of the phone in a folder, and returns the status.
func fileAt(t *testing.T, folder string) int {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	answer, err := client.Get(folder + "001565abcdef.cfg")
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}
