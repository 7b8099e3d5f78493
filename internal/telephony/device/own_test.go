package device_test

import (
	"strings"
	"testing"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op/optest"
)

// TestListOwn_OwnPhonesWithoutSecrets shows a user the own phones alone.
func TestListOwn_OwnPhonesWithoutSecrets(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		ada, username, password := h.addUser(t)
		h.do("POST", "/users", `{"email":"bob@example.com","first_name":"Bob"}`).Want(201)
		p := optest.Admin(h.org)
		p.UserID, p.Scopes = ada, nil
		a := h.server.Do(p, "GET", "/me/devices?include_total=true", nil).Want(200)
		if a.At("total") != float64(1) || a.Text("data.0.sip.username") != username || a.Text("data.0.user_id") != ada {
			t.Errorf("own phones: %s", a.Bytes)
		}
		if strings.Contains(string(a.Bytes), password) || a.Has("data.0.sip", "password") || a.Has("data.0", "provisioning_url") {
			t.Errorf("a secret is shown: %s", a.Bytes)
		}
		h.server.Do(p, "GET", "/devices", nil).Want(403)
		h.do("GET", "/me/devices", nil).Want(404).Refused("not_found")
	})
}
