package partner

import (
	"context"
	"strings"

	"soniq/internal/identity/org"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// SuspendIn is the input of Suspend.
type SuspendIn struct {
	OneIn
	Body SuspendBody
}

// SuspendBody holds the reason and the mode of a suspension.
type SuspendBody struct {
	Reason string   `json:"reason" doc:"1 to 500 characters"`
	Mode   org.Mode `json:"mode,omitempty" enum:"outbound_only,all" default:"all" doc:"outbound_only: nothing goes out to the public network; all: nothing works but emergency calls"`
}

// Suspend suspends a child organisation. Calls in progress continue, and emergency calls stay possible. A second call
// changes the mode of a suspension.
func (s *Service) Suspend(ctx context.Context, in *SuspendIn) (*op.Out[Partner], error) {
	reason, mode := strings.TrimSpace(in.Body.Reason), in.Body.Mode
	if n := len([]rune(reason)); n < 1 || n > 500 {
		return nil, op.Invalid(op.Field("reason", "invalid_length", "must have 1 to 500 characters"))
	}
	if mode == "" {
		mode = org.SuspendAll
	}
	return s.changeState(ctx, in.ID, func(o org.Organization) (org.Status, org.AccountState, error) {
		if o.Status == org.Closed {
			return "", org.AccountState{}, op.State("the organisation is closed", string(org.Closed), "resume")
		}
		st := org.AccountState{SuspendMode: mode, SuspendReason: &reason, SuspendedAt: o.SuspendedAt}
		if o.Status != org.Suspended {
			st.SuspendedAt = db.At(s.cfg.Clock.Now())
		}
		return org.Suspended, st, nil
	}, nil)
}

// ResumeIn is the input of Resume.
type ResumeIn struct {
	OneIn
	Body struct{}
}

// Resume ends a suspension. It also reopens a closed child organisation until its erasure begins.
func (s *Service) Resume(ctx context.Context, in *ResumeIn) (*op.Out[Partner], error) {
	return s.changeState(ctx, in.ID, func(o org.Organization) (org.Status, org.AccountState, error) {
		if o.Status == org.Closed && !s.cfg.Clock.Now().Before(o.EraseAfter.Time) {
			return "", org.AccountState{}, op.State("the organisation is being erased", string(org.Closed))
		}
		return org.Active, org.AccountState{}, nil
	}, nil)
}

// CloseIn is the input of Close.
type CloseIn struct {
	OneIn
	op.Match
	Confirm string `query:"confirm" maxLength:"200" doc:"The name of the organisation, so that no other is closed by mistake"`
}

// Close closes a child organisation. Only emergency calls stay possible. The organisation is erased after the grace
// period.
func (s *Service) Close(ctx context.Context, in *CloseIn) (*op.Out[Partner], error) {
	return s.changeState(ctx, in.ID, func(o org.Organization) (org.Status, org.AccountState, error) {
		if err := in.Check(o.UpdatedAt); err != nil {
			return "", org.AccountState{}, err
		}
		if in.Confirm != o.Name {
			return "", org.AccountState{}, op.Invalid(op.Field("confirm", "mismatch", "must be the name of the organisation: "+o.Name))
		}
		if o.Status == org.Closed {
			return org.Closed, o.AccountState, nil
		}
		now := s.cfg.Clock.Now()
		return org.Closed, org.AccountState{ClosedAt: db.At(now), EraseAfter: db.At(now.Add(s.cfg.Grace))}, nil
	}, s.scheduleErase)
}

// changeState changes the state of a child organisation in one transaction, together with its consequences.
func (s *Service) changeState(ctx context.Context, id string, next func(org.Organization) (org.Status, org.AccountState, error),
	then func(ctx context.Context, tx db.Querier, o org.Organization) error) (out *op.Out[Partner], err error) {
	err = s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		o, err := s.child(ctx, tx, id)
		if err != nil {
			return err
		}
		status, st, err := next(o)
		if err != nil {
			return err
		}
		if err := s.cfg.Orgs.SetState(ctx, o.ID, status, st); err != nil {
			return err
		}
		s.cfg.Keys.RevalidateAll(tx)
		if o, err = s.child(ctx, tx, id); err != nil {
			return err
		}
		if then != nil {
			if err := then(ctx, tx, o); err != nil {
				return err
			}
		}
		out, err = s.respond(ctx, tx, o)
		return err
	})
	return out, err
}
