package org

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
)

// A Mode says how far a suspension goes.
type Mode string

// The modes of a suspension.
const (
	OutboundOnly Mode = "outbound_only" // nothing goes out to the public network
	All          Mode = "all"           // nothing works but emergency calls
)

// Standing is what is known of a child organisation beside its status.
type Standing struct {
	SuspendMode       Mode
	SuspendReason     *string
	SuspendedAt       db.Time
	ClosedAt          db.Time
	EraseAfter        db.Time
	ExternalReference *string
	AdminUserID       *string
}

// Barred reports whether nothing of the organisation works but emergency calls: it is closed, or suspended altogether.
// Calls in progress go on.
func (o Organization) Barred() bool {
	return o.Status == Closed || o.Status == Suspended && o.SuspendMode != OutboundOnly
}

// SetStatus suspends altogether, resumes or closes an organisation and its twin.
func (s *Service) SetStatus(ctx context.Context, id string, status Status) error {
	return s.Stand(ctx, id, status, Standing{})
}

// Stand sets the status of an organisation and its twin, with what goes with it.
func (s *Service) Stand(ctx context.Context, id string, status Status, st Standing) error {
	return s.db.Tx(ctx, func(tx db.Querier) error {
		if err := setStanding(ctx, tx, id, status, st, db.At(s.now())); err != nil {
			return fmt.Errorf("set status of organisation: %w", err)
		}
		db.OnCommit(tx, func() { s.bus.Publish(Changed, nil) })
		return nil
	})
}
