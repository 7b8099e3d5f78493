package org

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"soniq/internal/platform/access"
	"soniq/internal/platform/op"
	"soniq/internal/platform/strictjson"
)

// Quota limits an organisation's use of the platform. null: no limit.
type Quota struct {
	Users           *int `json:"users" doc:"Who are not removed"`
	Numbers         *int `json:"numbers" doc:"Which are not released"`
	ConcurrentCalls *int `json:"concurrent_calls" doc:"Calls to the public network at once"`
	CallsPerSecond  *int `json:"calls_per_second" doc:"Calls to the public network that begin in a second"`
	StorageGB       *int `json:"storage_gb" doc:"Recordings, voicemail, sounds and exports, in 10⁹ bytes; when it is used up, nothing more is recorded, uploaded or exported"`
}

// quotaLimit is one limit of a quota.
type quotaLimit struct {
	name string
	v    **int
}

// limits returns the limits of a quota by name, in the order of the struct.
func (q *Quota) limits() []quotaLimit {
	return []quotaLimit{{"users", &q.Users}, {"numbers", &q.Numbers}, {"concurrent_calls", &q.ConcurrentCalls},
		{"calls_per_second", &q.CallsPerSecond}, {"storage_gb", &q.StorageGB}}
}

// overriddenBy returns q with the limits that by sets replaced.
func (q Quota) overriddenBy(by Quota) Quota {
	mine, theirs := q.limits(), by.limits()
	for i := range mine {
		if *theirs[i].v != nil {
			*mine[i].v = *theirs[i].v
		}
	}
	return q
}

const maxLimit = 1_000_000

// Check lists the violations of a quota. field is its name in the request.
func (q Quota) Check(field string) (wrong []op.Violation) {
	for _, m := range q.limits() {
		if n := *m.v; n != nil && (*n < 0 || *n > maxLimit) {
			wrong = append(wrong, op.Field(field+"."+m.name, "out_of_range", "must be 0 to "+strconv.Itoa(maxLimit)))
		}
	}
	return wrong
}

// Plan is a set of limits and scopes that a partner sells.
type Plan struct {
	Limits Quota          `json:"limits"`
	Scopes []access.Scope `json:"scopes"` // empty: all except partner scopes
}

// Plans holds the configured plans, and the operator's overrides for single organisations by id.
type Plans struct {
	Plans         map[string]Plan  `json:"plans"`
	Organizations map[string]Quota `json:"organizations"`
}

// Unlimited is the plan of organisations without a partner.
const Unlimited = "standard"

// DefaultPlans returns the plans of an installation that configures none.
func DefaultPlans() Plans {
	plan := func(users, numbers, calls, perSecond, storage int) Plan {
		return Plan{Limits: Quota{&users, &numbers, &calls, &perSecond, &storage}}
	}
	return Plans{Plans: map[string]Plan{"starter": plan(10, 5, 10, 2, 10), "business": plan(100, 50, 50, 5, 100),
		"enterprise": plan(1000, 500, 500, 20, 1000)}}
}

// ReadPlans reads the operator's plans from a JSON object.
func ReadPlans(r io.Reader) (Plans, error) {
	var p Plans
	text, err := io.ReadAll(r)
	if err != nil {
		return p, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return p, err
	}
	if faults := append(strictjson.Check(text), strictjson.Variants(text, &p)...); len(faults) > 0 {
		return p, errors.New(faults[0].Field + ": " + faults[0].Message)
	}
	if len(p.Plans) == 0 {
		p.Plans = DefaultPlans().Plans
	}
	return p, p.check()
}

func (p Plans) check() error {
	for _, name := range p.Names() {
		plan := p.Plans[name]
		if name == "" || name == Unlimited || len(name) > 60 {
			return fmt.Errorf("plan %q: a name has 1 to 60 characters, and is not %s, which is without limits", name, Unlimited)
		}
		if wrong := plan.Limits.Check("limits"); len(wrong) > 0 {
			return fmt.Errorf("plan %s: %s %s", name, wrong[0].Field, wrong[0].Message)
		}
		for _, s := range plan.Scopes {
			if !s.Known() || s.Partner() {
				return fmt.Errorf("plan %s: %q is not a scope that a plan can have", name, s)
			}
		}
	}
	for id, q := range p.Organizations {
		if wrong := q.Check("limits"); len(wrong) > 0 {
			return fmt.Errorf("organisation %s: %s %s", id, wrong[0].Field, wrong[0].Message)
		}
	}
	return nil
}

// Names returns the names of the plans, sorted.
func (p Plans) Names() []string { return slices.Sorted(maps.Keys(p.Plans)) }

// quota returns the quota of an organisation. The operator's limits take precedence over those of the partner, and
// these over those of the plan.
func (p Plans) quota(o Organization) Quota {
	return p.Plans[o.Plan].Limits.overriddenBy(o.ownQuota).overriddenBy(p.Organizations[firstNonEmpty(o.LiveID, o.ID)])
}

func firstNonEmpty(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// SetPlans replaces the plans. Call it before the first request. It returns an error if the plan of an organisation
// is missing, because that organisation would have no limits.
func (s *Service) SetPlans(ctx context.Context, p Plans) error {
	used, err := plansInUse(ctx, s.db.Read(ctx))
	if err != nil {
		return fmt.Errorf("read plans in use: %w", err)
	}
	for _, name := range used {
		if _, ok := p.Plans[name]; !ok && name != Unlimited {
			return fmt.Errorf("plan %s is not configured, and organisations have it; configure it, or change their plan first", name)
		}
	}
	s.plans = p
	return nil
}

// Plans returns the configured plans.
func (s *Service) Plans() Plans { return s.plans }

// Scopes returns the held scopes that the plan of the organisation allows. A plan without scopes allows all.
func (s *Service) Scopes(o Organization, held []access.Scope) []access.Scope {
	plan := s.plans.Plans[o.Plan]
	if len(plan.Scopes) == 0 {
		return held
	}
	return slices.DeleteFunc(slices.Clone(held), func(x access.Scope) bool { return !x.Partner() && !slices.Contains(plan.Scopes, x) })
}
