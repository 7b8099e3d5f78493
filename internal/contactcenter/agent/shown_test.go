package agent_test

import (
	"testing"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op/optest"
	"soniq/internal/platform/visibility/visibilitytest"
)

// The figures of an agent count the calls that the user sees who asks for them.
func TestStats_OnlyCallsThatTheUserSees(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		x := visibilitytest.Org{T: t, DB: d, ID: h.org}
		for id, role := range map[string]string{"usr_ann": "agent", "usr_bob": "agent", "usr_own": "owner"} {
			x.User(id, role)
		}
		for _, id := range []string{"call_answered", "call_missed"} {
			x.Call(id)
			x.Leg(id, "usr_ann")
		}
		at := db.At(h.now())
		x.Exec(`UPDATE calls SET started_at = $2, answered_at = $2 WHERE org_id = $1 AND id = 'call_answered'`, at)
		x.Exec(`UPDATE legs SET answered_at = $2, talk_seconds = 60 WHERE org_id = $1 AND call_id = 'call_answered'`, at)
		x.Exec(`UPDATE calls SET started_at = $2, missed_reason = 'no_answer' WHERE org_id = $1 AND id = 'call_missed'`, at)
		for user, want := range map[string]float64{"": 1, "usr_own": 1, "usr_ann": 1, "usr_bob": 0} {
			p := access.Principal{OrgID: h.org, UserID: user, Scopes: access.All(), Environment: access.Live}
			if user == "" {
				p = optest.Admin(h.org)
			}
			a := h.server.Do(p, "GET", "/agents/usr_ann/stats", nil).Want(200)
			if a.At("answered") != want || a.At("missed") != want {
				t.Errorf("%q is told %s, want %v", user, a.Bytes, want)
			}
		}
	})
}

// TestPublishChanged_ShownBeforePublished has a call that ends before its ringing is published, after a client was shown that the agent's
// phone rings. Without another event the client would show it for ever.
func TestPublishChanged_ShownBeforePublished(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.register(t)
		before := h.publishedPresences(t)
		n := h.ringUnpublished(t)
		h.wantPresence(t, "ringing", "")
		h.end(t, n, time.Time{})
		h.wantPresence(t, "available", "")
		if got, want := h.publishedPresences(t), before+" available"; got != want {
			t.Errorf("published %s, want %s", got, want)
		}
		h.publish(t)
		if got, want := h.publishedPresences(t), before+" available"; got != want {
			t.Errorf("later published %s, want %s", got, want)
		}
	})
}
