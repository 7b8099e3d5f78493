package call_test

import (
	"context"
	"testing"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/visibility/visibilitytest"
	"soniq/internal/telephony/call"
)

// The earlier calls with a number are those that the user sees: in the history of a contact, and when the number calls again.
func TestHistory_OnlyCallsThatTheUserSees(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newTestOrg(t, d)
		x := visibilitytest.Org{T: t, DB: d, ID: o.ID}
		for id, role := range map[string]string{"usr_ann": "agent", "usr_bob": "agent", "usr_new": "agent", "usr_own": "owner"} {
			x.User(id, role)
		}
		for id, user := range map[string]string{"call_ann": "usr_ann", "call_bob": "usr_bob"} {
			x.Call(id)
			x.Leg(id, user)
		}
		const phone = "+12025550100"
		for user, want := range map[string]int{"": 2, "usr_own": 2, "usr_ann": 1, "usr_bob": 1, "usr_new": 0} {
			as := access.With(context.Background(), access.Principal{OrgID: o.ID, UserID: user})
			all, err := o.Calls.History(as, o.ID, call.History{Numbers: []string{phone}, Limit: 9})
			if err != nil {
				t.Fatal(err)
			}
			n, last, err := o.Calls.PriorCalls(as, o.ID, phone, "call_now")
			if err != nil || len(all) != want || n != want || (last != nil) != (want > 0) {
				t.Errorf("%q finds %d calls, and is told of %d, the last %v, want %d: %v", user, len(all), n, last, want, err)
			}
			if want == 1 && (all[0].ID != "call_"+user[4:] || last != nil && last.ID != all[0].ID) {
				t.Errorf("%q finds %s", user, all[0].ID)
			}
		}
	})
}
