package smppserver

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// UpdateIn is the request to change an application.
type UpdateIn struct {
	OneIn
	op.Match
	Body Patch
}

// Patch is a merge patch (RFC 7396) of an application.
type Patch struct {
	Name            op.Change[string]   `json:"name,omitzero"`
	Enabled         op.Change[bool]     `json:"enabled,omitzero" doc:"Who is not is disconnected, and what comes in meanwhile is not kept for it"`
	Numbers         op.Change[[]string] `json:"numbers,omitzero"`
	MaxBinds        op.Change[int]      `json:"max_binds,omitzero"`
	RatePerSecond   op.Change[int]      `json:"rate_per_second,omitzero"`
	DefaultAlphabet op.Change[string]   `json:"default_alphabet,omitzero" doc:"gsm7, latin1 or ascii"`
}

func (p Patch) apply(a *Application) {
	p.Name.Apply(&a.Name)
	p.Enabled.Apply(&a.Enabled)
	p.Numbers.Apply(&a.Numbers)
	p.MaxBinds.Apply(&a.MaxBinds)
	p.RatePerSecond.Apply(&a.RatePerSecond)
	p.DefaultAlphabet.Apply(&a.DefaultAlphabet)
	a.Name = strings.TrimSpace(a.Name)
}

// Update changes an application. Limits and alphabet apply from the next bind on, so the application is disconnected
// if they change.
func (s *Service) Update(ctx context.Context, in *UpdateIn) (*op.Out[Application], error) {
	a, err := s.change(ctx, in.OneIn, in.Match, func(a *Application) (again bool) {
		before := *a
		in.Body.apply(a)
		return before.Enabled != a.Enabled || before.MaxBinds != a.MaxBinds || before.RatePerSecond != a.RatePerSecond ||
			before.DefaultAlphabet != a.DefaultAlphabet
	})
	if err != nil {
		return nil, err
	}
	return op.Versioned(a, a.UpdatedAt)
}

// RotateIn is the request for a new password.
type RotateIn struct {
	OneIn
	op.Match
}

// Rotate replaces the password and disconnects the application.
func (s *Service) Rotate(ctx context.Context, in *RotateIn) (*op.Out[Secret], error) {
	password := ""
	a, err := s.change(ctx, in.OneIn, in.Match, func(a *Application) (again bool) {
		password = s.setNewPassword(a)
		return true
	})
	if err != nil {
		return nil, err
	}
	return op.Versioned(Secret{a, password}, a.UpdatedAt)
}

// change stores a changed application. apply reports whether the application must be disconnected.
func (s *Service) change(ctx context.Context, one OneIn, match op.Match, apply func(a *Application) (again bool)) (a Application,
	err error) {
	err = s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) (err error) {
		if a, err = s.find(ctx, tx, one.ID); err != nil {
			return err
		}
		if err := match.Check(a.UpdatedAt); err != nil {
			return err
		}
		if apply(&a) {
			db.OnCommit(tx, func() { s.disconnect(a.account()) })
		}
		if err := s.validate(ctx, tx, &a); err != nil {
			return err
		}
		a.UpdatedAt = db.At(s.cfg.Clock.Now())
		return update(ctx, tx, a)
	})
	return a, err
}

// disconnect ends the binds of an application on this node, in the background.
func (s *Service) disconnect(account string) {
	s.background("disconnecting an application failed", func(context.Context) error {
		s.server.Disconnect(account)
		return nil
	})
}

// DeleteIn is the request to delete an application.
type DeleteIn struct {
	OneIn
	op.Match
}

// Delete deletes an application. Its submitted messages are still sent, but without receipts.
func (s *Service) Delete(ctx context.Context, in *DeleteIn) error {
	return s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		a, err := s.find(ctx, tx, in.ID)
		if err != nil {
			return err
		}
		if err := in.Check(a.UpdatedAt); err != nil {
			return err
		}
		db.OnCommit(tx, func() { s.disconnect(a.account()) })
		return deleteApplication(ctx, tx, a.org, a.ID)
	})
}

// Limits of an application.
const (
	maxNameLength = 120
	maxBinds      = 50
	maxRate       = 1000
	maxNumbers    = 500
)

// validate returns all violations of an application. It replaces its numbers by their ids.
func (s *Service) validate(ctx context.Context, q db.Querier, a *Application) error {
	var wrong []op.Violation
	want := func(ok bool, field, code, message string) {
		if !ok {
			wrong = append(wrong, op.Field(field, code, message))
		}
	}
	n := utf8.RuneCountInString(a.Name)
	want(n >= 1 && n <= maxNameLength, "name", "invalid_length", "must have 1 to 120 characters")
	want(a.MaxBinds >= 1 && a.MaxBinds <= maxBinds, "max_binds", "out_of_range", "must be 1 to 50")
	want(a.RatePerSecond >= 1 && a.RatePerSecond <= maxRate, "rate_per_second", "out_of_range", "must be 1 to 1000")
	known := a.DefaultAlphabet == "gsm7" || a.DefaultAlphabet == "latin1" || a.DefaultAlphabet == "ascii"
	want(known, "default_alphabet", "invalid_value", "must be gsm7, latin1 or ascii")
	want(len(a.Numbers) <= maxNumbers, "numbers", "too_many", "at most 500")
	ids := make([]string, 0, len(a.Numbers))
	for i, text := range a.Numbers[:min(len(a.Numbers), maxNumbers)] {
		own, ok, err := s.cfg.Numbers.OwnNumber(ctx, q, a.org, text)
		if err != nil {
			return fmt.Errorf("find number: %w", err)
		}
		want(ok, fmt.Sprintf("numbers[%d]", i), "number_not_owned", "not a number of your organisation")
		ids = append(ids, own.ID)
	}
	if len(wrong) > 0 {
		return op.Invalid(wrong...)
	}
	a.Numbers = ids
	return nil
}
