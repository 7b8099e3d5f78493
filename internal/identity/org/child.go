package org

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// Child describes an organisation that a partner creates.
type Child struct {
	ParentID, Name, Plan string
	Country, Timezone    string // "": the partner's country, the country's time zone
	Record               bool   // recording is on by default
	Limits               Quota  // overrides of the plan
	ExternalReference    string
}

// CreateChild creates an organisation of a partner. A live one gets a sandbox twin, as every organisation does. One
// in the sandbox has no twin.
func (s *Service) CreateChild(ctx context.Context, tx db.Querier, c Child) (Organization, error) {
	parent, err := get(ctx, tx, c.ParentID)
	if err != nil {
		return parent, fmt.Errorf("find partner: %w", err)
	}
	o := s.newChild(parent, c)
	if wrong := append(o.check(), s.checkPlan(o)...); len(wrong) > 0 {
		return o, op.Invalid(wrong...)
	}
	if o.LiveID != "" {
		err = insert(ctx, tx, o)
	} else {
		err = insertWithTwin(ctx, tx, o)
	}
	if err != nil {
		return o, fmt.Errorf("create organisation: %w", err)
	}
	o, err = get(ctx, tx, o.ID)
	return s.withDerived(o), err
}

// newChild returns the organisation as it is stored. A sandbox child is its own twin, so that no part of it can
// become live.
func (s *Service) newChild(parent Organization, c Child) Organization {
	now := db.At(s.now())
	country, _ := Country(firstNonEmpty(c.Country, parent.Country))
	o := Organization{ID: db.NewID("org"), Name: strings.TrimSpace(c.Name), ParentID: &parent.ID, Plan: c.Plan, Status: Active,
		Environment: parent.Environment, Country: country, Timezone: firstNonEmpty(c.Timezone, timezoneOf(country)),
		Language: languageOf(country), CreatedAt: now, UpdatedAt: now, ownQuota: c.Limits,
		storedSettings: newRecordingSettings(country, onOff(c.Record))}
	o.ExternalReference, o.path = db.Null(c.ExternalReference).Ptr(), parent.path+o.ID+"/"
	o.Settings, _ = effective(country, o.storedSettings)
	if parent.Sandbox() {
		o.LiveID = o.ID
	}
	return o
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

func (s *Service) checkPlan(o Organization) []op.Violation {
	wrong := o.ownQuota.Check("limits")
	if _, ok := s.plans.Plans[o.Plan]; !ok {
		wrong = append(wrong, op.Field("plan", "unknown_plan", "must be one of "+strings.Join(s.plans.Names(), ", ")))
	}
	if o.ExternalReference != nil && len([]rune(*o.ExternalReference)) > 120 {
		wrong = append(wrong, op.Field("external_reference", "invalid_length", "must have at most 120 characters"))
	}
	return wrong
}

// ChildChange is a partner's change of a child organisation. Fields that are not set stay.
type ChildChange struct {
	Name, Plan, ExternalReference op.Change[string]
	Record                        op.Change[bool]
	Limits                        op.Change[map[string]*int] // null: those of the plan
}

// ChangeChild changes an organisation of a partner. Plan and limits also apply to its sandbox twin.
func (s *Service) ChangeChild(ctx context.Context, tx db.Querier, o Organization, c ChildChange) (Organization, error) {
	before := o
	c.Name.Apply(&o.Name)
	c.Plan.Apply(&o.Plan)
	if c.ExternalReference.Set {
		o.ExternalReference = db.Null(c.ExternalReference.V).Ptr()
	}
	if c.Record.Set {
		o.storedSettings = merge(o.storedSettings, map[string]any{"recording": map[string]any{"mode": onOff(c.Record.V)}})
	}
	wrong := o.ownQuota.applyPatch(c.Limits)
	o.Name = strings.TrimSpace(o.Name)
	var err error
	if o.Settings, err = effective(o.Country, o.storedSettings); err != nil {
		return o, err
	}
	if wrong = slices.Concat(wrong, o.check(), checkRecordingLaw(before, o), s.checkPlan(o)); len(wrong) > 0 {
		return o, op.Invalid(wrong...)
	}
	o.UpdatedAt = db.At(s.now())
	if err := updateChild(ctx, tx, o); err != nil {
		return o, fmt.Errorf("change organisation: %w", err)
	}
	db.OnCommit(tx, func() { s.bus.Publish(Changed, nil) })
	o, err = get(ctx, tx, o.ID)
	return s.withDerived(o), err
}

// applyPatch applies a merge patch to a quota.
func (q *Quota) applyPatch(c op.Change[map[string]*int]) (wrong []op.Violation) {
	if c.Null {
		*q = Quota{}
	}
	all := q.limits()
	for name, v := range c.V {
		i := slices.IndexFunc(all, func(m quotaLimit) bool { return m.name == name })
		if i < 0 {
			wrong = append(wrong, op.Field("limits."+name, "unknown_field", "there is no such limit"))
			continue
		}
		*all[i].v = v
	}
	return wrong
}

// SetAdmin stores the administrator of a child organisation.
func (s *Service) SetAdmin(ctx context.Context, tx db.Querier, id, userID string) error {
	_, err := tx.Exec(ctx, `UPDATE orgs SET admin_user_id = $2 WHERE id = $1`, id, userID)
	return err
}

// Child returns an organisation of a partner, or db.ErrNone.
func (s *Service) Child(ctx context.Context, q db.Querier, parent, id string) (Organization, error) {
	o, err := get(ctx, q, id)
	if err == nil && (o.ParentID == nil || *o.ParentID != parent) {
		return Organization{}, db.ErrNone
	}
	return s.withDerived(o), err
}

// ChildFilter selects organisations of a partner.
type ChildFilter struct {
	Statuses []string
	Plan, Q  string
	After    string
	Limit    int
}

func (by ChildFilter) filter(parent string) *db.Filter {
	f := db.Where(`SELECT `+orgColumns+` FROM orgs WHERE parent_id = $1`, parent).In("status", by.Statuses).Equal("plan", by.Plan)
	if by.Q != "" {
		like := "%" + db.Escape(by.Q) + "%"
		f.And(`lower(name) LIKE lower(?) ESCAPE '\' OR lower(external_reference) LIKE lower(?) ESCAPE '\'`, like, like)
	}
	return f
}

// Children returns the organisations of a partner in the order of creation, one more than the limit.
func (s *Service) Children(ctx context.Context, q db.Querier, parent string, by ChildFilter) ([]Organization, error) {
	text, args := by.filter(parent).Page("id", false, by.After, by.After, by.Limit).SQL()
	all, err := queryOrgs(ctx, q, text, args...)
	for i := range all {
		all[i] = s.withDerived(all[i])
	}
	return all, err
}

// CountChildren returns how many organisations Children lists in total.
func (s *Service) CountChildren(ctx context.Context, q db.Querier, parent string, by ChildFilter) (int, error) {
	return by.filter(parent).Count(ctx, q)
}
