package smscarrier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/platform/seal"
)

// Operations returns the API operations on carriers.
func (s *Service) Operations() []op.Operation {
	a := access.NumbersAdmin
	return []op.Operation{
		op.New("sms.carriers.list", "GET /sms/carriers", a, "List carriers of messages", s.List),
		op.New("sms.carriers.create", "POST /sms/carriers", a, "Connect a carrier of messages", s.Create).Status(201).Fails("plan_limit"),
		op.New("sms.carriers.get", "GET /sms/carriers/{id}", a, "Get one carrier of messages", s.Show),
		op.New("sms.carriers.update", "PATCH /sms/carriers/{id}", a, "Change a carrier of messages", s.Update),
		op.Delete("sms.carriers.delete", "DELETE /sms/carriers/{id}", a, "Disconnect a carrier of messages", s.Delete),
		op.New("sms.carriers.test", "POST /sms/carriers/{id}/test", a, "Ask whether a carrier would take messages now",
			s.Test).WithSideEffects(),
	}
}

// ListIn is the request for a page of carriers.
type ListIn struct{ op.Paging }

// List returns carriers by priority.
func (s *Service) List(ctx context.Context, in *ListIn) (*op.Out[op.Page[Carrier]], error) {
	after, err := in.After(ctx)
	if err != nil {
		return nil, err
	}
	q, org := s.cfg.DB.Read(ctx), access.Org(ctx)
	all, err := s.carriers(ctx, q, org)
	if err != nil {
		return nil, err
	}
	states, err := states(ctx, q, org)
	if err != nil {
		return nil, err
	}
	rest := slices.Clone(all)
	if after.ID != "" {
		rest = slices.DeleteFunc(rest, func(c Carrier) bool {
			return int64(c.Priority) < after.Int || int64(c.Priority) == after.Int && c.ID <= after.ID
		})
	}
	for i := range rest {
		s.addStatus(&rest[i], states[rest[i].ID])
	}
	page := op.Paged(ctx, in.Paging, rest[:min(len(rest), in.Limit+1)],
		func(c Carrier) op.Position { return op.Position{Int: int64(c.Priority), ID: c.ID} })
	return op.WithTotal(page, in.Paging, func() (int, error) { return len(all), nil })
}

// CreateIn is the request to connect a carrier.
type CreateIn struct{ Body Fresh }

// Fresh describes a carrier to connect.
type Fresh struct {
	Provider      string         `json:"provider" maxLength:"40" example:"smpp"`
	Name          string         `json:"name" maxLength:"60"`
	Enabled       *bool          `json:"enabled,omitempty" doc:"true unless given"`
	Settings      map[string]any `json:"settings" doc:"As the provider needs them; see the guide on messages"`
	Priority      *int           `json:"priority,omitempty" minimum:"0" maximum:"1000" doc:"100 unless given; the lowest is asked first"`
	Prefixes      []string       `json:"prefixes,omitempty" doc:"Beginnings of numbers in E.164, such as +49; all unless given" example:"[\"+1\"]"`
	Numbers       []string       `json:"numbers,omitempty" doc:"Your numbers whose messages it takes; all unless given"`
	RatePerSecond *float64       `json:"rate_per_second,omitempty" doc:"Messages (segments) it is given in a second at most; 10 unless given"`
	NumberRate    *float64       `json:"number_rate_per_second,omitempty" doc:"Of those, from one of your numbers; 1 unless given"`
}

// Create connects a carrier.
func (s *Service) Create(ctx context.Context, in *CreateIn) (*op.Out[Carrier], error) {
	b, now := in.Body, db.At(s.cfg.Clock.Now())
	c := Carrier{ID: db.NewID("smc"), Provider: b.Provider, Name: b.Name, Enabled: valueOr(b.Enabled, true),
		Priority: valueOr(b.Priority, defaultPriority), Prefixes: b.Prefixes,
		Numbers: b.Numbers, RatePerSecond: valueOr(b.RatePerSecond, defaultRate), NumberRate: valueOr(b.NumberRate, defaultNumberRate),
		CreatedAt: now, UpdatedAt: now, org: access.Org(ctx), secret: secret{Token: seal.Random(24)}}
	err := s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		all, err := s.carriers(ctx, tx, c.org)
		if err != nil {
			return err
		}
		if len(all) >= maxCarriers {
			return op.Fail("plan_limit", fmt.Sprintf("an organisation may connect %d carriers of messages", maxCarriers))
		}
		return s.save(ctx, tx, &c, b.Settings, all)
	})
	if err != nil {
		return nil, err
	}
	s.addStatus(&c, carrierState{})
	return &op.Out[Carrier]{Body: c, Location: op.Prefix + "/sms/carriers/" + c.ID, ETag: op.Tag(c.UpdatedAt)}, nil
}

func valueOr[T any](v *T, otherwise T) T {
	if v == nil {
		return otherwise
	}
	return *v
}

// OneIn has the id of a carrier.
type OneIn struct {
	ID string `path:"id" maxLength:"40" example:"smc_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
}

func (s *Service) getCarrier(ctx context.Context, q db.Querier, id string) (Carrier, error) {
	c, err := s.carrier(ctx, q, access.Org(ctx), id)
	if db.IsNone(err) {
		return c, op.NotFound("carrier")
	}
	return c, err
}

// Show returns one carrier.
func (s *Service) Show(ctx context.Context, in *OneIn) (*op.Out[Carrier], error) {
	c, err := s.getCarrier(ctx, s.cfg.DB.Read(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	is, err := stateOf(ctx, s.cfg.DB.Read(ctx), c.org, c.ID)
	if err != nil {
		return nil, err
	}
	s.addStatus(&c, is)
	return op.Versioned(c, c.UpdatedAt)
}

// UpdateIn is the request to change a carrier.
type UpdateIn struct {
	OneIn
	op.Match
	Body Patch
}

// Patch is a merge patch (RFC 7396) of a carrier.
type Patch struct {
	Name          op.Change[string]         `json:"name,omitzero"`
	Enabled       op.Change[bool]           `json:"enabled,omitzero"`
	Settings      op.Change[map[string]any] `json:"settings,omitzero" doc:"Members to set; null removes one, asterisks leave a secret as it is"`
	Priority      op.Change[int]            `json:"priority,omitzero"`
	Prefixes      op.Change[[]string]       `json:"prefixes,omitzero" doc:"All of them"`
	Numbers       op.Change[[]string]       `json:"numbers,omitzero" doc:"All of them"`
	RatePerSecond op.Change[float64]        `json:"rate_per_second,omitzero"`
	NumberRate    op.Change[float64]        `json:"number_rate_per_second,omitzero"`
}

func (p Patch) apply(c *Carrier) (map[string]any, error) {
	p.Name.Apply(&c.Name)
	p.Enabled.Apply(&c.Enabled)
	p.Priority.Apply(&c.Priority)
	p.Prefixes.Apply(&c.Prefixes)
	p.Numbers.Apply(&c.Numbers)
	p.RatePerSecond.Apply(&c.RatePerSecond)
	p.NumberRate.Apply(&c.NumberRate)
	settings := map[string]any{}
	if err := json.Unmarshal(c.secret.Settings, &settings); err != nil {
		return nil, fmt.Errorf("read settings of carrier %s: %w", c.ID, err)
	}
	if wrong := op.CheckMovedSettings(settings, p.Settings.V); len(wrong) > 0 {
		return nil, op.Invalid(wrong...)
	}
	return op.MergeSettings(settings, p.Settings.V), nil
}

// Update changes a carrier.
func (s *Service) Update(ctx context.Context, in *UpdateIn) (*op.Out[Carrier], error) {
	var c Carrier
	var is carrierState
	err := s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) (err error) {
		if c, err = s.getCarrier(ctx, tx, in.ID); err != nil {
			return err
		}
		if err := in.Check(c.UpdatedAt); err != nil {
			return err
		}
		settings, err := in.Body.apply(&c)
		if err != nil {
			return err
		}
		all, err := s.carriers(ctx, tx, c.org)
		if err != nil {
			return err
		}
		c.UpdatedAt = db.At(s.cfg.Clock.Now())
		if err := s.save(ctx, tx, &c, settings, all); err != nil {
			return err
		}
		if err := clearState(ctx, tx, c); err != nil { // the cause of the error may be corrected now
			return err
		}
		is, err = stateOf(ctx, tx, c.org, c.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.addStatus(&c, is)
	return op.Versioned(c, c.UpdatedAt)
}

// DeleteIn is the request to disconnect a carrier.
type DeleteIn struct {
	OneIn
	op.Match
}

// Delete disconnects a carrier. Its waiting messages go to another carrier that accepts them, or fail.
func (s *Service) Delete(ctx context.Context, in *DeleteIn) error {
	return s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		c, err := s.getCarrier(ctx, tx, in.ID)
		if err != nil {
			return err
		}
		if err := in.Check(c.UpdatedAt); err != nil {
			return err
		}
		s.publishChange(tx, c.org)
		return deleteCarrier(ctx, tx, c.org, c.ID)
	})
}

// Trial is the result of a test.
type Trial struct {
	OK        bool    `json:"ok"`
	Status    string  `json:"status" enum:"active,connecting,degraded,auth_required,disabled"`
	Error     *string `json:"error"`
	LatencyMS int     `json:"latency_ms"`
}

// testTimeout bounds a test.
const testTimeout = 8 * time.Second

// Test tests whether a carrier would accept messages. Nothing is sent.
func (s *Service) Test(ctx context.Context, in *OneIn) (*op.Out[Trial], error) {
	c, err := s.getCarrier(ctx, s.cfg.DB.Read(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	if !c.Enabled {
		return nil, op.State("the carrier is disabled; set enabled to true first", disabled)
	}
	ctx, cancel := context.WithTimeout(ctx, testTimeout)
	defer cancel()
	began := s.cfg.Clock.Now()
	is, err := s.testCarrier(ctx, c)
	t := Trial{OK: err == nil, Status: is, LatencyMS: int(s.cfg.Clock.Now().Sub(began).Milliseconds())}
	if err != nil {
		text := errorText(err)
		t.Error = &text
	}
	return op.OK(t)
}

// errorText returns an error as text of at most 500 octets.
func errorText(err error) string {
	text := err.Error()
	if errors.Is(err, context.DeadlineExceeded) {
		text = "no answer in time: " + text
	}
	if len(text) > 500 {
		text = text[:500]
	}
	return text
}
