package visibility_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/visibility"
	"soniq/internal/platform/visibility/visibilitytest"
)

var ctx = context.Background()

// stage has an organisation with a call for each part that a user can have.
func stage(t *testing.T, d *db.DB) visibilitytest.Org {
	t.Helper()
	o := visibilitytest.Org{T: t, DB: d, ID: "org_a"}
	o.Create()
	for id, role := range map[string]string{"usr_ann": "agent", "usr_bob": "agent", "usr_sue": "supervisor", "usr_sam": "supervisor",
		"usr_own": "owner", "usr_adm": "admin", "usr_view": "viewer", "usr_new": "apprentice"} {
		o.User(id, role)
	}
	o.Queue("que_1")
	o.Queue("que_2")
	o.Member("que_1", "usr_ann")
	o.Member("que_2", "usr_sue")
	for _, c := range []string{"rang", "placed", "answered", "mailbox", "assigned", "waited", "through", "queued_message", "elsewhere", "bobs"} {
		o.Call("call_" + c)
	}
	o.Leg("call_rang", "usr_ann")
	o.Exec(`UPDATE calls SET user_id = 'usr_ann' WHERE org_id = $1 AND id = 'call_placed'`)
	o.Exec(`UPDATE calls SET agent_id = 'usr_ann' WHERE org_id = $1 AND id = 'call_answered'`)
	o.Message("vm_1", "call_mailbox", "user", "usr_ann")
	o.Message("vm_2", "call_assigned", "user", "usr_bob")
	o.Exec(`UPDATE voicemails SET assignee_id = 'usr_ann' WHERE org_id = $1 AND id = 'vm_2'`)
	o.Waited("call_waited", "que_1")
	o.Exec(`UPDATE calls SET queue_id = 'que_1' WHERE org_id = $1 AND id = 'call_through'`)
	o.Message("vm_3", "call_queued_message", "queue", "que_1")
	o.Waited("call_elsewhere", "que_2")
	o.Leg("call_bobs", "usr_bob")
	return o
}

// shown returns the calls that a user sees in a list. It fails the test if the check of one call differs.
func shown(o visibilitytest.Org, user string) string {
	o.T.Helper()
	v, err := visibility.Of(ctx, o.DB.Read(ctx), o.ID, user)
	if err != nil {
		o.T.Fatal(err)
	}
	every := ids(o, db.Where(`SELECT id FROM calls WHERE org_id = $1`, o.ID))
	some := ids(o, v.Narrow(db.Where(`SELECT id FROM calls WHERE org_id = $1`, o.ID), "id"))
	for _, id := range every {
		sees, err := v.Sees(ctx, o.DB.Read(ctx), id)
		if err != nil {
			o.T.Fatal(err)
		}
		if sees != slices.Contains(some, id) {
			o.T.Errorf("%s sees %s: %v, but the list says %v", user, id, sees, !sees)
		}
	}
	if len(some) == len(every) {
		return "all"
	}
	return fmt.Sprint(some)
}

func ids(o visibilitytest.Org, f *db.Filter) (all []string) {
	o.T.Helper()
	text, args := f.SQL()
	rows, err := o.DB.Read(ctx).Query(ctx, text+" ORDER BY id", args...)
	if err != nil {
		o.T.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			o.T.Fatal(err)
		}
		all = append(all, id)
	}
	return all
}

func TestView_PartsAndRoles(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := stage(t, d)
		const anns = "[call_answered call_assigned call_mailbox call_placed call_queued_message call_rang call_through call_waited]"
		for user, want := range map[string]string{"": "all", "usr_own": "all", "usr_adm": "all", "usr_view": "all", "usr_ann": anns,
			"usr_bob": "[call_assigned call_bobs]", "usr_sue": "[call_elsewhere]", "usr_sam": "all", "usr_new": "[]", "usr_gone": "[]"} {
			if got := shown(o, user); got != want {
				t.Errorf("%q sees %s, want %s", user, got, want)
			}
		}
		o.Exec(`DELETE FROM queue_members WHERE org_id = $1`)
		if got, want := shown(o, "usr_ann"), "[call_answered call_assigned call_mailbox call_placed call_rang]"; got != want {
			t.Errorf("after leaving the queue, Ann sees %s, want %s", got, want)
		}
		o.SetRole("usr_own", "agent")
		if got := shown(o, "usr_own"); got != "[]" {
			t.Errorf("an owner who became an agent sees %s", got)
		}
	})
}

func TestGuard_HiddenRecords(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := stage(t, d)
		o.Exec(`UPDATE calls SET cdr_id = 'cdr_bobs' WHERE org_id = $1 AND id = 'call_bobs'`)
		o.Exec(`INSERT INTO callbacks (org_id, id, to_number, user_id, scheduled_at, window_end, window_given, status, attempts,
				max_attempts, origin, sandbox, created_at)
			VALUES ($1, 'cbk_bobs', '+12025550100', 'usr_bob', 1, 1, FALSE, 'scheduled', '[]', 3, 'api', FALSE, 1)`)
		o.Exec(`INSERT INTO cdr_exports (org_id, id, status, ask, total, done, size_bytes, revision, created_at, user_id)
			VALUES ($1, 'exp_bobs', 'ready', '{}', 0, 0, 0, 0, 1, 'usr_bob')`)
		guard := visibility.Guard{DB: d}
		for user, sees := range map[string]bool{"usr_ann": false, "usr_bob": true, "usr_own": true, "": true} {
			as := access.With(ctx, access.Principal{OrgID: o.ID, UserID: user})
			for _, id := range []string{"call_bobs", "cdr_bobs", "cbk_bobs", "exp_bobs", "vm_2", "call_unknown", "usr_own", "nonsense"} {
				hidden, err := guard.Hidden(as, id)
				if err != nil {
					t.Fatal(err)
				}
				want := !sees && slices.Contains([]string{"call_bobs", "cdr_bobs", "cbk_bobs", "exp_bobs"}, id)
				if hidden != want {
					t.Errorf("%s is hidden from %q: %v", id, user, hidden)
				}
			}
		}
	})
}

// TestQueryPlan_IndexesOnly checks that no part is looked for in a whole table of an organisation.
func TestQueryPlan_IndexesOnly(t *testing.T) {
	t.Parallel()
	o := stage(t, dbtest.SQLite(t))
	v, err := visibility.Of(ctx, o.DB.Read(ctx), o.ID, "usr_ann")
	if err != nil {
		t.Fatal(err)
	}
	text, args := v.Narrow(db.Where(`SELECT id FROM calls WHERE org_id = $1`, o.ID), "id").SQL()
	rows, err := o.DB.Read(ctx).Query(ctx, "EXPLAIN QUERY PLAN "+text+" ORDER BY started_at DESC, id DESC LIMIT 51", args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	seen := ""
	for rows.Next() {
		var a, b, c int
		var step string
		if err := rows.Scan(&a, &b, &c, &step); err != nil {
			t.Fatal(err)
		}
		seen += step + "\n"
		if strings.HasPrefix(step, "SCAN") || strings.Contains(step, "(org_id=?)") && !strings.Contains(step, "calls USING") {
			t.Errorf("reads more than the part: %s", step)
		}
	}
	for _, index := range []string{"legs_user (org_id=? AND user_id=?)", "calls_user (org_id=? AND user_id=?)", "calls_agent (org_id=? AND agent_id=?)",
		"queue_members_user (org_id=? AND user_id=?)", "queue_entries_entered (org_id=? AND queue_id=?)", "voicemails_mailbox (org_id=? AND mailbox_id=?)"} {
		if !strings.Contains(seen, index) {
			t.Errorf("%s is not used:\n%s", index, seen)
		}
	}
}

// TestSupervises_MembersOfCommonQueues compares whom the users of the stage may act for.
func TestSupervises_MembersOfCommonQueues(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := stage(t, d)
		o.Member("que_2", "usr_bob")
		for _, c := range []struct {
			user, agent string
			want        bool
		}{
			{"usr_sue", "usr_bob", true}, {"usr_sue", "usr_sue", true}, {"usr_sue", "usr_ann", false}, {"usr_sue", "usr_none", false},
			{"usr_sam", "usr_ann", true}, {"usr_own", "usr_ann", true}, {"", "usr_ann", true}, {"usr_none", "usr_ann", false},
		} {
			v, err := visibility.Of(ctx, d.Read(ctx), o.ID, c.user)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := v.Supervises(ctx, d.Read(ctx), c.agent); err != nil || got != c.want {
				t.Errorf("%q for %s: %v, %v", c.user, c.agent, got, err)
			}
		}
	})
}
