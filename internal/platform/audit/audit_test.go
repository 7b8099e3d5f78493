package audit_test

import (
	"context"
	"testing"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/platform/access"
	"soniq/internal/platform/audit"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op"
	"soniq/internal/platform/op/optest"
)

type thing struct {
	ID string `json:"id"`
}

type named struct {
	ID string `path:"id"`
}

// thingAction returns the result that the id selects.
func thingAction(_ context.Context, in *named) error {
	switch in.ID {
	case "forbidden":
		return op.Fail("plan_limit", "no more of these")
	case "wrong":
		return op.Invalid(op.Field("id", "wrong", "is wrong"))
	case "broken":
		return op.Fail("carrier_error", "the carrier fell over")
	}
	return nil
}

func newFixture(t *testing.T, d *db.DB) (*audit.Service, *optest.Server, access.Principal, access.Principal) {
	t.Helper()
	orgs, s := org.New(d, bus.New(), time.Now), &audit.Service{DB: d}
	var all [2]access.Principal
	for i, name := range []string{"Acme", "Other"} {
		o, err := orgs.Create(context.Background(), name, "GB")
		if err != nil {
			t.Fatal(err)
		}
		all[i] = optest.Admin(o.ID)
	}
	api := optest.New(t, d, append(s.Operations(),
		op.New("things.make", "POST /things", access.CallsWrite, "Make", func(context.Context, *struct{}) (*op.Out[thing], error) {
			return &op.Out[thing]{Body: thing{"thg_new"}}, nil
		}).Status(201),
		op.Delete("things.delete", "DELETE /things/{id}", access.CallsWrite, "Delete", thingAction),
		op.Delete("things.act", "DELETE /things/{id}/acts", access.CallsWrite, "Act", thingAction).WithSideEffects())...)
	return s, api, all[0], all[1]
}

func TestAudit_ActorOfEveryChange(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		_, api, acme, other := newFixture(t, d)
		api.Do(acme, "POST", "/things", nil).Want(201)
		api.Do(acme, "DELETE", "/things/thg_1", nil).Want(204)
		api.Do(acme, "DELETE", "/things/wrong", nil).Want(422)
		api.Do(acme, "DELETE", "/things/forbidden", nil).Want(403)
		api.Do(acme, "DELETE", "/things/broken/acts", nil).Want(502)
		weak := acme
		weak.Scopes, weak.KeyID, weak.KeyName = []access.Scope{access.CallsRead}, "key_weak", "weak"
		api.Do(weak, "DELETE", "/things/thg_2", nil).Want(403)
		a := api.Do(acme, "GET", "/audit-log?include_total=true", nil).Want(200)
		want := [][]any{
			{"things.delete", "thg_2", 403.0, "denied", "insufficient_scope", "weak"},
			{"things.act", "broken", 502.0, "failed", "carrier_error", "test"},
			{"things.delete", "forbidden", 403.0, "denied", "plan_limit", "test"},
			{"things.delete", "thg_1", 204.0, "done", nil, "test"},
			{"things.make", "thg_new", 201.0, "done", nil, "test"},
		}
		if a.At("total") != float64(len(want)) {
			t.Fatalf("%v lines, want %d: %s", a.At("total"), len(want), a.Bytes)
		}
		for i, w := range want {
			at := "data." + string(rune('0'+i)) + "."
			for j, name := range []string{"operation", "target_id", "status", "outcome", "code", "actor.key_name"} {
				if got := a.At(at + name); got != w[j] {
					t.Errorf("line %d: %s is %v, want %v", i, name, got, w[j])
				}
			}
			if a.Text(at+"actor.address") != "127.0.0.1" || a.Text(at+"actor.credential") != "standard" || a.Text(at+"actor.org_id") != acme.OrgID {
				t.Errorf("line %d: actor %v", i, a.At(at+"actor"))
			}
		}
		if a := api.Do(other, "GET", "/audit-log", nil).Want(200); a.At("data.0") != nil {
			t.Errorf("another organisation sees %s", a.Bytes)
		}
		api.Do(weak, "GET", "/audit-log", nil).Want(403)
	})
}

func TestList_Filters(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		_, api, acme, _ := newFixture(t, d)
		for _, path := range []string{"/things/thg_1", "/things/thg_2", "/things/thg_1/acts", "/things/forbidden"} {
			api.Do(acme, "DELETE", path, nil)
		}
		for query, want := range map[string]float64{
			"": 4, "actor=key_test": 4, "actor=key_none": 0, "target=thg_1": 2, "target=thg_2": 1, "target=thg%25": 0, "operation=things.act": 1,
			"operation=things.act,things.delete": 4, "outcome=denied": 1, "outcome=done": 3, "since=2000-01-01": 4, "until=2000-01-01": 0,
			"request_id=none": 0,
		} {
			a := api.Do(acme, "GET", "/audit-log?include_total=true&"+query, nil).Want(200)
			if a.At("total") != want {
				t.Errorf("%q finds %v lines, want %v", query, a.At("total"), want)
			}
		}
	})
}

func TestSweep_OldLines(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s, api, acme, _ := newFixture(t, d)
		api.Do(acme, "DELETE", "/things/thg_1", nil).Want(204)
		for _, c := range []struct {
			before time.Duration
			left   float64
		}{{-time.Hour, 1}, {time.Hour, 0}} {
			if _, err := s.Sweep(context.Background(), time.Now().Add(c.before)); err != nil {
				t.Fatal(err)
			}
			if got := api.Do(acme, "GET", "/audit-log?include_total=true", nil).Want(200).At("total"); got != c.left {
				t.Errorf("%v lines are left of what is older than %s from now, want %v", got, c.before, c.left)
			}
		}
	})
}
