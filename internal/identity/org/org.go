// Package org stores organisations, their settings, and the sandbox twin of each.
package org

import (
	"context"
	"errors"
	"fmt"
	"time"

	"soniq/internal/platform/bus"
	"soniq/internal/platform/db"
)

// Status is the status of an organisation's account.
type Status string

// States of an organisation.
const (
	Active    Status = "active"
	Suspended Status = "suspended"
	Closed    Status = "closed"
)

// Organization is a customer. Its sandbox twin is a separate organisation.
type Organization struct {
	ID          string  `json:"id" example:"org_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	Name        string  `json:"name"`
	ParentID    *string `json:"parent_id" doc:"The partner that manages it"`
	Environment string  `json:"environment" enum:"live,test"`
	Plan        string  `json:"plan" doc:"The plan that a partner gave it; standard: no partner did, and no plan limits it"`
	Status      Status  `json:"status" enum:"active,suspended,closed"`
	Country     string  `json:"country" doc:"ISO 3166: how national numbers are read, and where calls may go unless more is allowed"`
	Timezone    string  `json:"timezone" example:"Europe/London"`
	Language    string  `json:"language" example:"en"`
	Settings
	EmergencyCalling string  `json:"emergency_calling" enum:"available,not_available"`
	Limits           Limits  `json:"limits"`
	CreatedAt        db.Time `json:"created_at"`

	LiveID         string  `json:"-"` // for a sandbox twin: the organisation it belongs to
	UpdatedAt      db.Time `json:"-"`
	AccountState   `json:"-"`
	Quota          Quota `json:"-"`
	storedSettings map[string]any
	ownQuota       Quota // limits that override the plan's
	path           string
}

// Sandbox reports whether the organisation is the sandbox twin of a live one.
func (o Organization) Sandbox() bool { return o.LiveID != "" }

// Limits are the limits of one credential and of the organisation.
type Limits struct {
	ReadsPerMinute          int `json:"reads_per_minute"`
	WritesPerMinute         int `json:"writes_per_minute"`
	Burst                   int `json:"burst"`
	MemorySearchesPerSecond int `json:"memory_searches_per_second"`
	CallsPerSecond          int `json:"calls_per_second"`
	ConcurrentCalls         int `json:"concurrent_calls"`
	Webhooks                int `json:"webhooks"`

	Users     *int `json:"users" doc:"By the plan; null: no limit"`
	Numbers   *int `json:"numbers" doc:"By the plan; null: no limit"`
	StorageGB *int `json:"storage_gb" doc:"By the plan; null: no limit"`
}

// DefaultLimits are the published limits.
var DefaultLimits = Limits{ReadsPerMinute: 600, WritesPerMinute: 120, Burst: 60, MemorySearchesPerSecond: 20, Webhooks: 50}

// ErrCountry means that a text is not an ISO 3166 country code.
var ErrCountry = errors.New("not a country code of ISO 3166, such as GB")

// Changed is the bus subject on which the id of a changed organisation is published.
const Changed = "changed.orgs"

// cacheTTL limits how long a node may use old settings if the change message is lost.
const cacheTTL = 3 * time.Second

// Service manages organisations. It is safe for concurrent use.
type Service struct {
	db           *db.DB
	bus          *bus.Bus
	now          func() time.Time
	orgCache     *bus.Cache[*Organization]
	twinCache    *bus.Cache[string]
	storageCache *bus.Cache[int64]
	liveCache    *bus.Cache[int]
	baseLimits   Limits
	plans        Plans
}

// New returns a service.
func New(d *db.DB, b *bus.Bus, now func() time.Time) *Service {
	return &Service{db: d, bus: b, now: now, baseLimits: DefaultLimits, plans: DefaultPlans(),
		orgCache:     bus.NewCache[*Organization](b, Changed, cacheTTL, now),
		storageCache: bus.NewCache[int64](b, Changed, cacheTTL, now),
		liveCache:    bus.NewCache[int](b, Changed, cacheTTL, now),
		twinCache:    bus.NewCache[string](b, Changed, time.Hour, now)}
}

// SetLimits replaces the limits of credentials. Call it before the first request.
func (s *Service) SetLimits(l Limits) { s.baseLimits = l }

// Create creates an organisation and its sandbox twin, and returns the live one.
func (s *Service) Create(ctx context.Context, name, country string) (Organization, error) {
	country, ok := Country(country)
	if !ok {
		return Organization{}, ErrCountry
	}
	now := db.At(s.now())
	o := Organization{ID: db.NewID("org"), Name: name, Plan: Unlimited, Status: Active, Environment: "live",
		Country: country, Timezone: timezoneOf(country), Language: languageOf(country), CreatedAt: now, UpdatedAt: now}
	o.path, o.storedSettings = "/"+o.ID+"/", newRecordingSettings(country, "")
	err := s.db.Tx(ctx, func(tx db.Querier) error { return insertWithTwin(ctx, tx, o) })
	if err != nil {
		return o, fmt.Errorf("create organisation: %w", err)
	}
	return s.Get(ctx, o.ID)
}

func insertWithTwin(ctx context.Context, tx db.Querier, o Organization) error {
	if err := insert(ctx, tx, o); err != nil {
		return err
	}
	twin := o
	twin.ID, twin.LiveID, twin.Environment, twin.ParentID = db.NewID("org"), o.ID, "test", nil
	twin.path = "/" + twin.ID + "/"
	return insert(ctx, tx, twin)
}

// Get returns an organisation, or db.ErrNone. Outside of transactions the result is cached for a few seconds. The
// caller must not change its maps and slices.
func (s *Service) Get(ctx context.Context, id string) (Organization, error) {
	o, err := s.GetShared(ctx, id)
	if err != nil {
		return Organization{}, err
	}
	return *o, nil
}

// GetShared is Get without a copy. All callers share the result and must not change it.
func (s *Service) GetShared(ctx context.Context, id string) (*Organization, error) {
	load := func() (*Organization, error) {
		o, err := get(ctx, s.db.Read(ctx), id)
		o = s.withDerived(o)
		return &o, err
	}
	if db.InTx(ctx) {
		return load()
	}
	return s.orgCache.Get(id, load)
}

// Settings returns the settings of an organisation, or db.ErrNone. If the organisation is cached, it costs a map
// lookup.
func (s *Service) Settings(ctx context.Context, id string) (Settings, error) {
	o, err := s.GetShared(ctx, id)
	if err != nil {
		return Settings{}, err
	}
	return o.Settings, nil
}

// WebhookHeaderPrefix returns the prefix that an organisation chose for the headers of its webhooks, or "".
func (s *Service) WebhookHeaderPrefix(ctx context.Context, id string) (string, error) {
	o, err := s.GetShared(ctx, id)
	if err != nil || o.WebhookHeaderPrefix == nil {
		return "", err
	}
	return *o.WebhookHeaderPrefix, nil
}

// IsAlone reports whether there is only one live organisation that is not closed. If the database does not answer, it
// returns false.
func (s *Service) IsAlone(ctx context.Context) bool {
	n, err := s.liveCache.Get("", func() (int, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		return countLive(ctx, s.db.Read(db.Detached(ctx)))
	})
	return err == nil && n <= 1
}

// Twin returns the id of an organisation's sandbox twin. For a twin it returns the same id.
func (s *Service) Twin(ctx context.Context, id string) (string, error) {
	load := func() (string, error) { return twin(ctx, s.db.Read(ctx), id) }
	if db.InTx(ctx) {
		return load()
	}
	return s.twinCache.Get(id, load)
}

// List returns every live organisation in the order of creation.
func (s *Service) List(ctx context.Context) ([]Organization, error) {
	all, err := list(ctx, s.db.Read(ctx))
	for i := range all {
		all[i] = s.withDerived(all[i])
	}
	return all, err
}

// withDerived sets the fields that are derived from plan and settings.
func (s *Service) withDerived(o Organization) Organization {
	o.Limits, o.Quota = s.baseLimits, s.plans.quota(o)
	o.Outbound.CallsPerSecond = capAt(o.Outbound.CallsPerSecond, o.Quota.CallsPerSecond)
	o.Outbound.ConcurrentCalls = capAt(o.Outbound.ConcurrentCalls, o.Quota.ConcurrentCalls)
	o.Limits.CallsPerSecond, o.Limits.ConcurrentCalls = o.Outbound.CallsPerSecond, o.Outbound.ConcurrentCalls
	o.Limits.Users, o.Limits.Numbers, o.Limits.StorageGB = o.Quota.Users, o.Quota.Numbers, o.Quota.StorageGB
	return o
}

// Zone returns the time zone of an organisation; UTC if this machine does not know its name.
func (s *Service) Zone(ctx context.Context, id string) (*time.Location, error) {
	o, err := s.Get(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("find organisation: %w", err)
	}
	zone, err := time.LoadLocation(o.Timezone)
	if err != nil {
		return time.UTC, nil
	}
	return zone, nil
}
