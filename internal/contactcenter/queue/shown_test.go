package queue_test

import (
	"testing"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/visibility/visibilitytest"
)

// Who waits in a queue is shown to its members and to those who see all calls.
func TestCalls_OnlyThoseThatTheUserSees(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id := h.addQueue("")
		h.enter(t, id)
		x := visibilitytest.Org{T: t, DB: d, ID: h.org}
		for user, role := range map[string]string{"usr_ann": "agent", "usr_bob": "agent", "usr_own": "owner"} {
			x.User(user, role)
		}
		x.Member(id, "usr_ann")
		for user, want := range map[string]float64{"usr_own": 1, "usr_ann": 1, "usr_bob": 0} {
			p := access.Principal{OrgID: h.org, UserID: user, Scopes: access.All(), Environment: access.Live}
			a := h.server.Do(p, "GET", "/queues/"+id+"/calls?include_total=true", nil).Want(200)
			if a.At("total") != want || a.Has("data.0", "id") != (want == 1) {
				t.Errorf("%q sees %s, want %v", user, a.Bytes, want)
			}
		}
	})
}
