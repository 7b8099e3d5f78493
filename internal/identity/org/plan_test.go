package org_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/platform/access"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
)

func TestReadPlans_InvalidRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"plans":{"basic":{"limits":{"users":-1}}}}`:      "limits.users",
		`{"plans":{"basic":{"limit":{"users":1}}}}`:        "unknown field",
		`{"plans":{"standard":{"limits":{}}}}`:             "without limits",
		`{"plans":{"basic":{"scopes":["partners:read"]}}}`: "partners:read",
		`{"plans":{"basic":{"scopes":["world:rule"]}}}`:    "world:rule",
		`{"organizations":{"org_1":{"numbers":-4}}}`:       "org_1",
		`{"plans":`: "unexpected EOF",
		`{"plans":{"basic":{"limits":{"users":5},"scopes":["calls:read"]}},"organizations":{"org_1":{"users":9}}}`: "",
	} {
		_, err := org.ReadPlans(strings.NewReader(text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestQuota_OperatorOverridesPartnerAndPlan(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := context.Background()
		s := org.New(d, bus.New(), time.Now)
		parent, err := s.Create(ctx, "Partner", "GB")
		if err != nil {
			t.Fatal(err)
		}
		four := 4
		var child org.Organization
		err = d.TxContext(ctx, func(ctx context.Context, tx db.Querier) (err error) {
			child, err = s.CreateChild(ctx, tx, org.Child{ParentID: parent.ID, Name: "Child", Plan: "starter",
				Limits: org.Quota{Users: &four, CallsPerSecond: &four}})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		plans := org.DefaultPlans()
		nine, one := 9, 1
		plans.Organizations = map[string]org.Quota{child.ID: {Users: &nine, ConcurrentCalls: &one}}
		starter := plans.Plans["starter"]
		starter.Scopes = []access.Scope{access.CallsRead}
		plans.Plans["starter"] = starter
		if err := s.SetPlans(ctx, plans); err != nil {
			t.Fatal(err)
		}
		twin, err := s.Twin(ctx, child.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{child.ID, twin} {
			o, err := s.Child(ctx, d.Read(ctx), parent.ID, child.ID)
			if id == twin {
				o, err = s.Get(ctx, twin)
			}
			if err != nil || *o.Quota.Users != 9 || *o.Quota.Numbers != 5 || o.Limits.ConcurrentCalls != 1 ||
				o.Outbound.ConcurrentCalls != 1 ||
				o.Limits.CallsPerSecond != 4 || *o.Limits.Users != 9 {
				t.Errorf("%s: %+v, %+v, %v", id, o.Quota, o.Limits, err)
			}
			// the plan does not restrict partner scopes
			if held := s.Scopes(o, access.All()); len(held) != 3 || held[0] != access.CallsRead {
				t.Errorf("%s: scopes %v", id, held)
			}
		}
		if o, _ := s.Get(ctx, parent.ID); o.Quota.Users != nil || o.Limits.ConcurrentCalls != 100 || len(s.Scopes(o, access.All())) != 15 {
			t.Errorf("the partner itself: %+v", o.Limits)
		}
	})
}
