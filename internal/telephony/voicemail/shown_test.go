package voicemail_test

import (
	"context"
	"testing"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/visibility/visibilitytest"
	"soniq/internal/telephony/voicemail"
)

// The messages of a number are those that the user may hear.
func TestFromNumbers_OnlyMessagesThatTheUserSees(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		id := h.leaveMessage(t, h.ada)
		x := visibilitytest.Org{T: t, DB: d, ID: h.org}
		x.User("usr_bob", "agent")
		x.User("usr_own", "owner")
		for user, want := range map[string]int{"": 1, "usr_own": 1, h.ada: 1, "usr_bob": 0} {
			as := access.With(context.Background(), access.Principal{OrgID: h.org, UserID: user})
			all, err := h.FromNumbers(as, h.org, voicemail.History{Numbers: []string{"+442079460001"}, Limit: 9})
			if err != nil || len(all) != want || want == 1 && all[0].ID != id {
				t.Errorf("%q finds %v, want %d: %v", user, all, want, err)
			}
		}
	})
}
