package webhook

import (
	"context"
	"fmt"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// Operations returns the API operations of webhooks.
func (s *Service) Operations() []op.Operation {
	return []op.Operation{
		op.New("webhooks.list", "GET /webhooks", access.UsersAdmin, "List webhooks, newest first", s.List),
		op.New("webhooks.create", "POST /webhooks", access.UsersAdmin, "Add a webhook; its secret is shown once",
			s.Create).Status(201).Sensitive(),
		op.New("events.catalogue", "GET /webhooks/events", access.UsersAdmin, "List the kinds of events with schema and sample",
			s.Catalogue),
		op.New("webhooks.get", "GET /webhooks/{id}", access.UsersAdmin, "Get a webhook with its health", s.Get),
		op.New("webhooks.update", "PATCH /webhooks/{id}", access.UsersAdmin, "Change, pause or resume a webhook", s.Update),
		op.Delete("webhooks.delete", "DELETE /webhooks/{id}", access.UsersAdmin, "Delete a webhook and discard what it has not received",
			s.Delete),
		op.New("webhooks.rotate_secret", "POST /webhooks/{id}/rotate-secret", access.UsersAdmin,
			"Replace the secret; the old one stays valid for a while", s.Rotate).Sensitive(),
		op.New("webhooks.test", "POST /webhooks/{id}/test", access.UsersAdmin, "Send a signed sample event now", s.Test).WithSideEffects(),
		op.New("webhooks.replay", "POST /webhooks/{id}/replay", access.UsersAdmin, "Send the events of a range again",
			s.ReplayRange).Status(202).WithSideEffects(),
		op.New("sandbox.webhooks.fail", "POST /sandbox/webhooks/fail", access.UsersAdmin,
			"Let the next attempts at a webhook fail without leaving, to try what follows", s.Fail).Only(access.Sandbox),
		op.New("sandbox.events.trigger", "POST /sandbox/events/trigger", access.UsersAdmin,
			"Tell a sample event, which reports nothing real, as if it had happened", s.Trigger).Status(202).Only(access.Sandbox),
		op.New("webhooks.deliveries.list", "GET /webhooks/{id}/deliveries", access.UsersAdmin, "List deliveries, newest first",
			s.Deliveries),
		op.New("webhooks.deliveries.get", "GET /webhooks/{id}/deliveries/{delivery_id}", access.UsersAdmin,
			"Get a delivery with its attempts and exact body", s.Delivery),
		op.New("webhooks.deliveries.replay", "POST /webhooks/{id}/deliveries/{delivery_id}/replay", access.UsersAdmin,
			"Send an event again", s.Replay).Status(202),
	}
}

// ListIn is the request of webhooks.list.
type ListIn struct {
	op.Paging
	Status []string `query:"status" enum:"active,failing,paused,disabled" doc:"Only in these states"`
}

// List returns an organisation's webhooks.
func (s *Service) List(ctx context.Context, in *ListIn) (*op.Out[op.Page[Webhook]], error) {
	after, err := in.After(ctx)
	if err != nil {
		return nil, err
	}
	f := endpointFilter(access.Org(ctx)).In("status", in.Status)
	total, err := in.Total(ctx, s.cfg.DB.Read(ctx), f)
	if err != nil {
		return nil, err
	}
	f.Page("created_at", true, db.At(time.UnixMicro(after.Int)), after.ID, in.Limit)
	rows, err := listEndpoints(ctx, s.cfg.DB.Read(ctx), f)
	if err != nil {
		return nil, err
	}
	all := make([]Webhook, len(rows))
	for i, e := range rows {
		if all[i], err = s.describe(ctx, e); err != nil {
			return nil, err
		}
	}
	out := op.Paged(ctx, in.Paging, all, func(w Webhook) op.Position {
		return op.Position{Int: w.CreatedAt.UnixMicro(), ID: w.ID}
	})
	out.Body.Total = total
	return out, nil
}

// describe returns the API form of a webhook.
func (s *Service) describe(ctx context.Context, e *endpoint) (Webhook, error) {
	h, err := s.health(ctx, s.cfg.DB.Read(ctx), e)
	if err != nil {
		return Webhook{}, err
	}
	own, err := s.headers(e)
	if err != nil {
		return Webhook{}, err
	}
	for name := range own {
		own[name] = "********"
	}
	if own == nil {
		own = map[string]string{}
	}
	withheld, err := s.withheld(ctx, e)
	if err != nil {
		return Webhook{}, err
	}
	return Webhook{ID: e.ID, WithheldEvents: withheld, URL: e.URL, Events: e.Events, Description: e.Description, Status: e.Status,
		SecretHint: e.SecretHint, Filters: e.Filters, Ordered: e.Ordered, CallEndedTiming: e.Timing,
		SignedRecordingURLs: e.SignRecordingURLs, TimeoutSeconds: e.TimeoutSeconds, Headers: own, Health: h,
		LastSuccessAt: e.LastSuccess.Ptr(),
		LastFailureAt: e.LastFailure.Ptr(), DisabledReason: e.DisabledReason.Ptr(), CreatedAt: e.CreatedAt}, nil
}

// CreateIn is the request of webhooks.create.
type CreateIn struct{ Body CreateBody }

// CreateBody holds the settings of a new webhook.
type CreateBody struct {
	URL                 string            `json:"url" maxLength:"2048" doc:"Where events are sent; https" example:"https://example.com/hooks"`
	Events              []string          `json:"events" minItems:"1" maxItems:"50" doc:"Kinds of events, or * for all" example:"[\"call.ended\"]"`
	Description         string            `json:"description,omitempty" maxLength:"500"`
	Filters             Filters           `json:"filters,omitempty"`
	Ordered             bool              `json:"ordered,omitempty" doc:"Hold later events of a call until the earlier one succeeded or is given up"`
	CallEndedTiming     string            `json:"call_ended_timing,omitempty" enum:"enriched,immediate" default:"enriched" doc:"Send call.ended when recording and summary are there (30 s at most), or at once"`
	SignedRecordingURLs bool              `json:"signed_recording_urls,omitempty" doc:"Send recording addresses that need no credential for nine days, as long as a delivery may be tried; else fetch them with an API key"`
	TimeoutSeconds      int               `json:"timeout_seconds,omitempty" minimum:"1" maximum:"30" default:"15"`
	Headers             map[string]string `json:"headers,omitempty" doc:"Further headers of each delivery; kept encrypted, never shown"`
}

// maxEndpoints bounds the deliveries of one event.
const maxEndpoints = 50

// Create adds a webhook.
func (s *Service) Create(ctx context.Context, in *CreateIn) (*op.Out[Webhook], error) {
	who, _ := access.From(ctx)
	org, now, secret := who.OrgID, s.time(), newSecret()
	b := in.Body
	e := &endpoint{Org: org, User: who.UserID, ID: db.NewID("whk"), URL: b.URL, Events: b.Events, Description: b.Description,
		Status: Active, SecretHint: secretHint(secret), Filters: b.Filters, Ordered: b.Ordered, Timing: b.CallEndedTiming,
		SignRecordingURLs: b.SignedRecordingURLs, TimeoutSeconds: b.TimeoutSeconds, CreatedAt: now, UpdatedAt: now}
	prefix, err := s.headerPrefix(ctx, org)
	if err != nil {
		return nil, err
	}
	if wrong := s.check(e, b.Headers, prefix); len(wrong) > 0 {
		return nil, op.Invalid(wrong...)
	}
	if err := e.subscribe(ctx); err != nil {
		return nil, err
	}
	q := s.cfg.DB.Read(ctx)
	if n, err := countEndpoints(ctx, q, org); err != nil {
		return nil, err
	} else if n >= maxEndpoints {
		return nil, op.Fail("plan_limit", fmt.Sprintf("an organisation may have %d webhooks", maxEndpoints))
	}
	if e.Headers, err = s.sealHeaders(org, e.ID, b.Headers); err != nil {
		return nil, err
	}
	if e.Secret, err = s.cfg.Seal.Seal([]byte(secret), sealAAD(org, e.ID, "secret")); err != nil {
		return nil, err
	}
	if err := s.cfg.DB.Tx(ctx, func(tx db.Querier) error { return insertEndpoint(ctx, tx, e) }); err != nil {
		return nil, err
	}
	w, err := s.describe(ctx, e)
	w.Secret = secret
	return &op.Out[Webhook]{Location: op.Prefix + "/webhooks/" + e.ID, ETag: op.Tag(now), Body: w}, err
}

// GetIn identifies a webhook.
type GetIn struct {
	ID string `path:"id" doc:"Webhook" example:"whk_01JB2M"`
}

// Get returns one webhook.
func (s *Service) Get(ctx context.Context, in *GetIn) (*op.Out[Webhook], error) {
	e, err := s.findEndpoint(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	w, err := s.describe(ctx, e)
	if err != nil {
		return nil, err
	}
	return op.Versioned(w, e.UpdatedAt)
}

// findEndpoint returns a webhook of the caller's organisation, or a not_found error.
func (s *Service) findEndpoint(ctx context.Context, id string) (*endpoint, error) {
	e, err := getEndpoint(ctx, s.cfg.DB.Read(ctx), access.Org(ctx), id)
	if db.IsNone(err) {
		return nil, op.NotFound("webhook")
	}
	if err != nil {
		return nil, fmt.Errorf("read webhook: %w", err)
	}
	return e, nil
}

// DeleteIn is the request of webhooks.delete.
type DeleteIn struct {
	op.Match
	GetIn
}

// Delete deletes a webhook.
func (s *Service) Delete(ctx context.Context, in *DeleteIn) error {
	return s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		e, err := s.findEndpoint(ctx, in.ID)
		if err != nil {
			return err
		}
		if err := in.Check(e.UpdatedAt); err != nil {
			return err
		}
		return deleteEndpoint(ctx, tx, e.Org, e.ID, s.time())
	})
}

// RotateIn is the request of webhooks.rotate_secret.
type RotateIn struct {
	GetIn
	Body *RotateBody
}

// RotateBody sets how long the old secret stays valid.
type RotateBody struct {
	GraceSeconds *int `json:"grace_seconds,omitempty" minimum:"0" maximum:"604800" doc:"How long deliveries are signed with the old secret too; 86400 if not given"`
}

// grace returns the requested period; a day by default.
func (b *RotateBody) grace() time.Duration {
	if b == nil || b.GraceSeconds == nil {
		return 24 * time.Hour
	}
	return time.Duration(*b.GraceSeconds) * time.Second
}

// Rotated is a new secret.
type Rotated struct {
	Secret             string   `json:"secret" secret:"true" doc:"Shown once"`
	PreviousValidUntil *db.Time `json:"previous_valid_until" doc:"Until then deliveries carry the signature with the old secret too"`
}

// Rotate replaces the secret.
func (s *Service) Rotate(ctx context.Context, in *RotateIn) (*op.Out[Rotated], error) {
	secret, until := newSecret(), db.Time{}
	err := s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		e, err := s.findEndpoint(ctx, in.ID)
		if err != nil {
			return err
		}
		k, err := s.secrets(e, s.cfg.Clock.Now())
		if err != nil {
			return err
		}
		e.PreviousSecret, e.PreviousUntil = nil, db.Time{}
		if grace := in.Body.grace(); grace > 0 {
			until = db.At(s.cfg.Clock.Now().Add(grace))
			e.PreviousUntil = until
			if e.PreviousSecret, err = s.cfg.Seal.Seal([]byte(k.current), sealAAD(e.Org, e.ID, "previous_secret")); err != nil {
				return err
			}
		}
		if e.Secret, err = s.cfg.Seal.Seal([]byte(secret), sealAAD(e.Org, e.ID, "secret")); err != nil {
			return err
		}
		e.SecretHint, e.UpdatedAt = secretHint(secret), s.time()
		return updateEndpoint(ctx, tx, e)
	})
	if err != nil {
		return nil, err
	}
	return op.OK(Rotated{secret, until.Ptr()})
}
