package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"soniq/e2e/rig"
	"soniq/internal/customer/crm/vendortest"
)

// The vendor descriptions that the CRM adapters are checked against also fit third-party clients: the vendor's own,
// or the most used one if the vendor has none for Node. The description knows every request of such a client, and the
// client understands the responses of the stand-in.
func TestVendors_ClientsMatchDescriptions(t *testing.T) {
	t.Parallel()
	found, _ := filepath.Glob(filepath.Join(rig.Root(), "e2e", "node", "node_modules", "node-linux-*", "bin", "node"))
	if len(found) != 1 {
		t.Fatalf("there is no Node of npm in e2e/node: %v", found)
	}
	for name, want := range map[string]struct {
		client, phone, id string
		asked             map[string]int // of method and the beginning of the path
	}{
		"pipedrive":  {"pipedrive", "020 7946 0018", "901", map[string]int{"GET /api/v2/persons/search": 1, "POST /api/v2/persons": 1, "PATCH /api/v2/persons/": 1, "POST /api/v1/notes": 1, "POST /api/v2/activities": 1, "PATCH /api/v2/activities/": 1}},
		"hubspot":    {"@hubspot/api-client", "(020) 7946 0018", "901", map[string]int{"POST /crm/v3/objects/contacts/search": 1, "PATCH /crm/v3/objects/contacts/": 1, "POST /crm/v3/objects/calls": 1, "PATCH /crm/v3/objects/calls/": 1, "POST /crm/v3/objects/notes": 1}},
		"salesforce": {"jsforce", "(020) 7946-0018", "00TD000000M7fyIMAR", map[string]int{"GET /services/data/v61.0/search": 1, "POST /services/data/v61.0/sobjects/Contact": 1, "PATCH /services/data/v61.0/sobjects/Contact/": 1, "GET /services/data/v61.0/query": 1, "POST /services/data/v61.0/sobjects/Task": 1, "PATCH /services/data/v61.0/sobjects/Task/": 1}},
		"zendesk":    {"node-zendesk", "+442079460018", "512", map[string]int{"GET /api/v2/users/search.json": 1, "POST /api/v2/users/create_or_update.json": 1, "PUT /api/v2/users/": 1, "PUT /api/v2/tickets/": 1}},
		"dynamics":   {"dynamics-web-api", "020 7946 0018", "00000000-0000-0000-0000-000000000512", map[string]int{"GET /api/data/v9.2/contacts": 1, "PATCH /api/data/v9.2/contacts(": 1, "PATCH /api/data/v9.2/annotations(": 1, "PATCH /api/data/v9.2/phonecalls(": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := vendortest.New(t, name)
			v.AcceptCredentials("Bearer token")
			run := exec.CommandContext(t.Context(), found[0], filepath.Join(rig.Root(), "e2e", "node", "vendors.mjs"), name, v.URL)
			out, err := run.Output()
			var failed *exec.ExitError
			if err != nil {
				failed, _ = err.(*exec.ExitError)
				t.Fatalf("%s failed: %v %s", want.client, err, failed.Stderr)
			}
			var got struct {
				Name, Phone string
				ID          any
			}
			d := json.NewDecoder(bytes.NewReader(out))
			d.UseNumber()
			if err := d.Decode(&got); err != nil || got.Name == "" || got.Phone != want.phone || fmt.Sprint(got.ID) != want.id {
				t.Errorf("%s understood %s, %v", want.client, out, err)
			}
			for what, n := range want.asked {
				method, path, _ := strings.Cut(what, " ")
				if v.CountRequests(method, path) < n {
					t.Errorf("%s did not ask %s: %v", want.client, what, v.Requests())
				}
			}
		})
	}
}
