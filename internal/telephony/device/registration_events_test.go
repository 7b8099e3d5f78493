package device_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"soniq/internal/identity/user"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
	"soniq/internal/telephony/device"
)

func TestRegistrationEvents_OnChangeOnly(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		ctx := context.Background()
		user, username, _ := h.addUser(t)
		a, _ := h.account(t, username)
		save := func(all ...device.Binding) {
			t.Helper()
			if err := h.Save(ctx, a.DeviceID, all); err != nil {
				t.Fatal(err)
			}
		}
		save(h.binding("ada"))
		h.now = h.now.Add(30 * time.Second)
		save(h.binding("ada"))
		save()
		save()
		save(h.binding("ada"))
		since := h.now
		h.now = h.now.Add(2 * time.Minute)
		for range 2 {
			if err := h.PublishExpired(ctx, since, h.now); err != nil {
				t.Fatal(err)
			}
			since = h.now
		}
		save(h.binding("ada"))
		h.do("POST", "/users/"+user+"/sip-credentials/rotate", `{}`).Want(200)
		save(h.binding("ada"))
		h.do("PATCH", "/devices/"+a.DeviceID, `{"status":"disabled"}`).Want(200)
		rows, err := d.Read(ctx).Query(ctx, `SELECT body FROM events WHERE org_id = $1 AND kind = 'device.registration' AND audience = 'stream' ORDER BY id`, h.org)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		var told []string
		for rows.Next() {
			var e event.Event
			var data event.DeviceRegistration
			if err := rows.Scan(&e.Body); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(e.Data()), &data); err != nil {
				t.Fatal(err)
			}
			if data.DeviceID != a.DeviceID || data.UserID == nil || *data.UserID != user {
				t.Errorf("told %s", e.Body)
			}
			told = append(told, data.Status)
		}
		if got := strings.Join(told, " "); got != "registered unregistered registered expired registered unregistered registered unregistered" {
			t.Errorf("told %s", got)
		}
	})
}

// userRemoval deletes the phones of removed users.
type userRemoval struct{ h *fixture }

func (o userRemoval) UserRemoved(ctx context.Context, tx db.Querier, r user.Removal) error {
	return o.h.RemoveUser(ctx, tx, r)
}
