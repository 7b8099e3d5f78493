package crm

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"soniq/internal/customer/contact"
	"soniq/internal/customer/crm/adapter"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// Operations returns the API operations of connections and sync jobs.
func (s *Service) Operations() []op.Operation {
	r, w := access.ContactsRead, access.ContactsWrite
	return []op.Operation{
		op.New("crm.providers", "GET /crm/providers", r, "List what can be connected", s.Providers),
		op.New("crm.connections.list", "GET /crm/connections", r, "List connected systems", s.List),
		op.New("crm.connections.create", "POST /crm/connections", w, "Connect a system", s.Create).Status(201),
		op.New("crm.connections.update", "PATCH /crm/connections/{id}", w, "Change a connection", s.Update),
		op.Delete("crm.connections.delete", "DELETE /crm/connections/{id}", w, "Disconnect a system", s.Delete),
		op.New("crm.connections.authorize", "POST /crm/connections/{id}/authorize", w, "Begin to agree to a connection in a browser",
			s.Authorize),
		op.New("crm.connections.test", "POST /crm/connections/{id}/test", w, "Ask a connected system now", s.Test).WithSideEffects(),
		op.New("crm.sync.list", "GET /crm/sync-jobs", r, "List what is written to connected systems", s.Syncs),
		op.New("crm.sync.retry", "POST /crm/sync-jobs/{id}/retry", w, "Try again to write it", s.Retry),
	}
}

// Provider is a kind of system that can be connected.
type Provider struct {
	Provider       string               `json:"provider"`
	Name           string               `json:"name"`
	Description    string               `json:"description"`
	Enabled        bool                 `json:"enabled" doc:"Connections of this kind can be made here"`
	Capabilities   adapter.Capabilities `json:"capabilities"`
	SettingsSchema op.Members           `json:"settings_schema" doc:"JSON schema of settings"`
	FieldMap       []string             `json:"field_map" nullable:"false" doc:"Fields that a field_map may name"`
}

// Providers lists the providers that are built in.
func (s *Service) Providers(context.Context, *struct{}) (*op.Out[op.Page[Provider]], error) {
	out := op.Page[Provider]{Data: []Provider{}}
	for _, p := range adapter.Providers {
		x := Provider{Provider: p.Name, Name: p.Title, Description: p.Description, Enabled: p.IsAvailable(), Capabilities: p.Capabilities,
			FieldMap: []string{}}
		schema, err := json.Marshal(schemaOf(p.Settings))
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(schema, &x.SettingsSchema); err != nil {
			return nil, err
		}
		if p.HasFieldMap {
			x.FieldMap = sortedFields()
		}
		out.Data = append(out.Data, x)
	}
	return op.OK(out)
}

// ListIn is the request of crm.connections.list.
type ListIn struct{ op.Paging }

// List returns the connections in the order of their priority, including the organisation's own contacts.
func (s *Service) List(ctx context.Context, in *ListIn) (*op.Out[op.Page[Connection]], error) {
	after, err := in.After(ctx)
	if err != nil {
		return nil, err
	}
	all, err := s.allConnections(ctx, s.cfg.DB.Read(ctx), access.Org(ctx))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b Connection) int {
		if a.Priority != b.Priority {
			return a.Priority - b.Priority
		}
		return strings.Compare(a.ID, b.ID)
	})
	rest := all
	if after.ID != "" {
		rest = slices.DeleteFunc(slices.Clone(all), func(c Connection) bool {
			return int64(c.Priority) < after.Int || int64(c.Priority) == after.Int && c.ID <= after.ID
		})
	}
	for i := range rest {
		s.fillView(&rest[i])
	}
	page := op.Paged(ctx, in.Paging, rest[:min(len(rest), in.Limit+1)],
		func(c Connection) op.Position { return op.Position{Int: int64(c.Priority), ID: c.ID} })
	return op.WithTotal(page, in.Paging, func() (int, error) { return len(all), nil })
}

// CreateIn is the request of crm.connections.create.
type CreateIn struct{ Body Fresh }

// Fresh describes a system to connect.
type Fresh struct {
	Provider  string            `json:"provider" maxLength:"40" example:"http"`
	Name      string            `json:"name" maxLength:"60" doc:"Shown as the source of what it knows"`
	Settings  map[string]any    `json:"settings,omitempty" doc:"As settings_schema of the provider says"`
	Priority  *int              `json:"priority,omitempty" minimum:"0" maximum:"1000" doc:"100 unless given; the lowest wins"`
	FieldMap  map[string]string `json:"field_map,omitempty"`
	TimeoutMS int               `json:"timeout_ms,omitempty" minimum:"50" maximum:"10000" doc:"2000 unless given"`
}

// Create connects a system.
func (s *Service) Create(ctx context.Context, in *CreateIn) (*op.Out[Connection], error) {
	b, now := in.Body, db.At(s.cfg.Clock.Now())
	c := Connection{ID: db.NewID("crm"), Provider: b.Provider, Name: b.Name, Priority: defaultPriority, TimeoutMS: b.TimeoutMS,
		FieldMap: b.FieldMap, CreatedAt: now, org: access.Org(ctx), enabled: true, updatedAt: now}
	if b.Priority != nil {
		c.Priority = *b.Priority
	}
	if c.TimeoutMS == 0 {
		c.TimeoutMS = defaultTimeout
	}
	if b.Settings == nil {
		b.Settings = map[string]any{}
	}
	if b.Provider == "internal" {
		return nil, op.Fail("already_exists", "the organisation's own contacts are always connected, as "+contact.InternalID)
	}
	err := s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		all, err := s.allConnections(ctx, tx, c.org)
		if err != nil {
			return err
		}
		if len(all) > maxConnections {
			return op.Fail("plan_limit", fmt.Sprintf("an organisation may connect %d systems", maxConnections))
		}
		if err := c.hold(ctx, b.Settings); err != nil {
			return err
		}
		if err := s.save(ctx, tx, &c, b.Settings, all); err != nil {
			return err
		}
		if !s.requiresConsent(c) {
			return nil
		}
		a, err := s.startAuthorization(ctx, tx, c)
		c.AuthorizeURL = a.URL
		return err
	})
	if err != nil {
		return nil, err
	}
	s.fillView(&c)
	return &op.Out[Connection]{Body: c, Location: op.Prefix + "/crm/connections/" + c.ID, ETag: op.Tag(c.updatedAt)}, nil
}

// maxSettingsBytes bounds the settings of a connection.
const maxSettingsBytes = 64 << 10

// save checks a connection and writes it. It enqueues a read if the system is a list.
func (s *Service) save(ctx context.Context, tx db.Querier, c *Connection, settings map[string]any, others []Connection) error {
	wrong := c.check(others)
	raw, err := json.Marshal(settings)
	if err != nil || len(raw) > maxSettingsBytes {
		wrong = append(wrong, op.Field("settings", "invalid_length", "may have 64 kB"))
	}
	p, ok := adapter.FindProvider(c.Provider)
	var a adapter.Adapter
	switch {
	case !ok:
		wrong = append(wrong, op.Field("provider", "not_available", "can be one of "+adapter.ProviderNames()))
	case p.IsAvailable():
		var more []op.Violation
		a, more = s.adapterOf(p, *c, raw)
		wrong = append(wrong, more...)
	case len(settings) > 0:
		wrong = append(wrong, op.Field("settings", "unknown_field", "own contacts have no settings"))
	}
	if len(wrong) > 0 {
		return op.Invalid(wrong...)
	}
	c.settings = raw
	sealed, err := s.cfg.Seal.Seal(raw, c.settingsAAD())
	if err != nil {
		return fmt.Errorf("seal settings: %w", err)
	}
	if err := putConnection(ctx, tx, *c, sealed); err != nil {
		return err
	}
	s.publishChanged(tx, c.org)
	if _, ok := a.(adapter.Directory); ok && c.enabled {
		return s.enqueueRead(ctx, tx, *c)
	}
	return nil
}

func (c *Connection) check(others []Connection) (wrong []op.Violation) {
	c.Name = strings.TrimSpace(c.Name)
	if n := utf8.RuneCountInString(c.Name); n < 1 || n > 60 || strings.ContainsFunc(c.Name, func(r rune) bool { return r < ' ' }) {
		wrong = append(wrong, op.Field("name", "invalid_length", "must have 1 to 60 characters"))
	}
	if slices.ContainsFunc(others, func(o Connection) bool { return o.ID != c.ID && strings.EqualFold(o.Name, c.Name) }) {
		wrong = append(wrong, op.Field("name", "already_exists", "another connection has this name"))
	}
	if c.Priority < 0 || c.Priority > 1000 {
		wrong = append(wrong, op.Field("priority", "invalid_value", "must be between 0 and 1000"))
	}
	if c.TimeoutMS < 50 || c.TimeoutMS > 10_000 {
		wrong = append(wrong, op.Field("timeout_ms", "invalid_value", "must be between 50 and 10000"))
	}
	return wrong
}

// OneIn identifies a connection.
type OneIn struct {
	ID string `path:"id" maxLength:"40" example:"crm_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
}

// UpdateIn is the request of crm.connections.update.
type UpdateIn struct {
	OneIn
	op.Match
	Body Patch
}

// Patch holds the changes of a connection.
type Patch struct {
	Name      op.Change[string]            `json:"name,omitzero"`
	Status    op.Change[string]            `json:"status,omitzero" doc:"active or disabled"`
	Settings  op.Change[map[string]any]    `json:"settings,omitzero" doc:"Members to set; null removes one, asterisks leave a secret as it is"`
	Priority  op.Change[int]               `json:"priority,omitzero"`
	FieldMap  op.Change[map[string]string] `json:"field_map,omitzero" doc:"All of it"`
	TimeoutMS op.Change[int]               `json:"timeout_ms,omitzero"`
}

// Update changes a connection.
func (s *Service) Update(ctx context.Context, in *UpdateIn) (*op.Out[Connection], error) {
	var c Connection
	err := s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) (err error) {
		all, err := s.allConnections(ctx, tx, access.Org(ctx))
		if err != nil {
			return err
		}
		if c, err = findConnection(all, in.ID); err != nil {
			return err
		}
		if err := in.Check(c.updatedAt); err != nil {
			return err
		}
		settings, moved, err := in.Body.apply(&c)
		if err != nil {
			return err
		}
		if moved {
			if err := dropGrant(ctx, tx, &c); err != nil {
				return err
			}
		}
		if in.Body.Settings.Set {
			if err := c.hold(ctx, settings); err != nil {
				return err
			}
		}
		if c.updatedAt = db.At(s.cfg.Clock.Now()); c.CreatedAt.IsZero() {
			c.CreatedAt = c.updatedAt
		}
		return s.save(ctx, tx, &c, settings, all)
	})
	if err != nil {
		return nil, err
	}
	s.fillView(&c)
	return op.Versioned(c, c.updatedAt)
}

// apply applies the changes and returns the new settings. moved reports whether they lead to another place.
func (p Patch) apply(c *Connection) (settings map[string]any, moved bool, err error) {
	p.Name.Apply(&c.Name)
	p.Priority.Apply(&c.Priority)
	p.TimeoutMS.Apply(&c.TimeoutMS)
	p.FieldMap.Apply(&c.FieldMap)
	if p.Status.Set {
		if p.Status.V != "active" && p.Status.V != "disabled" {
			return nil, false, op.Invalid(op.Field("status", "invalid_value", "must be active or disabled"))
		}
		c.enabled = p.Status.V == "active"
	}
	old := map[string]any{}
	if err := json.Unmarshal(c.settings, &old); err != nil {
		return nil, false, fmt.Errorf("read settings of connection %s: %w", c.ID, err)
	}
	if wrong := op.CheckMovedSettings(old, p.Settings.V); len(wrong) > 0 {
		return nil, false, op.Invalid(wrong...)
	}
	settings = op.MergeSettings(old, p.Settings.V)
	return settings, op.SettingsMoved(old, settings), nil
}

func findConnection(all []Connection, id string) (Connection, error) {
	i := slices.IndexFunc(all, func(c Connection) bool { return c.ID == id })
	if i < 0 {
		return Connection{}, op.NotFound("connection")
	}
	return all[i], nil
}

// DeleteIn is the request of crm.connections.delete.
type DeleteIn struct {
	OneIn
	op.Match
}

// Delete disconnects a system. The records that were copied from it are deleted by a job.
func (s *Service) Delete(ctx context.Context, in *DeleteIn) error {
	if in.ID == contact.InternalID {
		return op.State("the organisation's own contacts stay connected", "active", "update")
	}
	return s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		c, err := getConnection(ctx, tx, access.Org(ctx), in.ID)
		if db.IsNone(err) {
			return op.NotFound("connection")
		}
		if err != nil {
			return err
		}
		if err := in.Check(c.updatedAt); err != nil {
			return err
		}
		if err := s.enqueueRevoke(ctx, tx, c); err != nil {
			return err
		}
		if err := deleteConnection(ctx, tx, c.org, c.ID); err != nil {
			return err
		}
		s.publishChanged(tx, c.org)
		return s.enqueueForget(ctx, tx, c)
	})
}
