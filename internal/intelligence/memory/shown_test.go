package memory_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"soniq/internal/intelligence/memory"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/visibility/visibilitytest"
)

func TestSearch_OnlyCallsThatTheUserSees(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) { wantShown(t, newService(t, d, nil), d) })
}

// wantShown stores calls of two agents about the same, and checks that each agent finds only their own, and the owner both.
func wantShown(t *testing.T, s *memory.Service, d *db.DB) {
	t.Helper()
	o := visibilitytest.Org{T: t, DB: d, ID: "org_a"}
	for id, role := range map[string]string{"usr_ann": "agent", "usr_bob": "agent", "usr_own": "owner"} {
		o.User(id, role)
	}
	for call, user := range map[string]string{"call_ann": "usr_ann", "call_bob": "usr_bob"} {
		o.Call(call)
		o.Leg(call, user)
		indexCall(t, s, d, "org_a", memory.Call{ID: call, Phone: "+14155557777", At: time.Now(), Direction: "inbound", Status: "completed",
			Turns: []memory.Turn{{Speaker: "Caller", Text: "The walrus in the aquarium has stolen my umbrella"}}})
		note := memory.TextEntry{Kind: memory.KindNote, Of: "note_of_" + call, CallID: call, Phone: "+14155557777", Text: "Walrus took the umbrella", At: time.Now()}
		if err := d.Tx(context.Background(), func(tx db.Querier) error {
			return s.AddText(context.Background(), tx, "org_a", note)
		}); err != nil {
			t.Fatal(err)
		}
	}
	for user, want := range map[string][]string{"usr_ann": {"call_ann"}, "usr_bob": {"call_bob"}, "usr_own": {"call_ann", "call_bob"}, "": {"call_ann", "call_bob"}} {
		as := access.With(context.Background(), access.Principal{OrgID: "org_a", UserID: user})
		for name, in := range map[string]memory.Query{"all": {}, "words": {Mode: memory.Keyword}, "meaning": {Mode: memory.Semantic}, "number": {Phone: "+14155557777"}} {
			in.Text = "walrus aquarium umbrella"
			found, err := s.Search(as, "org_a", in)
			if err != nil {
				t.Fatal(err)
			}
			got := []string{}
			for _, r := range found.Results {
				if r.CallID != nil && (*r.CallID == "call_ann" || *r.CallID == "call_bob") && !slices.Contains(got, *r.CallID) {
					got = append(got, *r.CallID)
				}
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("%s: %q finds %v, want %v", name, user, got, want)
			}
		}
		c, err := s.Caller(as, "org_a", "+14155557777", 10)
		if err != nil {
			t.Fatal(err)
		}
		if c.CallsTotal != len(want) || len(c.Calls) != len(want) {
			t.Errorf("%q sees %d and lists %d calls of the number, want %d", user, c.CallsTotal, len(c.Calls), len(want))
		}
	}
}
