package org

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
)

// Mode is the extent of a suspension.
type Mode string

// Modes of a suspension.
const (
	SuspendOutbound Mode = "outbound_only" // no calls or messages to the public network
	SuspendAll      Mode = "all"           // everything except emergency calls
)

// AccountState holds the details of the status of an organisation.
type AccountState struct {
	SuspendMode       Mode
	SuspendReason     *string
	SuspendedAt       db.Time
	ClosedAt          db.Time
	EraseAfter        db.Time
	ExternalReference *string
	AdminUserID       *string
}

// IsBlocked reports whether everything except emergency calls is blocked: the organisation is closed, or suspended in
// mode All. Calls in progress continue.
func (o Organization) IsBlocked() bool {
	return o.Status == Closed || o.Status == Suspended && o.SuspendMode != SuspendOutbound
}

// SetStatus suspends (mode All), resumes or closes an organisation and its sandbox twin.
func (s *Service) SetStatus(ctx context.Context, id string, status Status) error {
	return s.SetState(ctx, id, status, AccountState{})
}

// SetState sets the status and the account state of an organisation and its sandbox twin.
func (s *Service) SetState(ctx context.Context, id string, status Status, st AccountState) error {
	return s.db.Tx(ctx, func(tx db.Querier) error {
		if err := storeState(ctx, tx, id, status, st, db.At(s.now())); err != nil {
			return fmt.Errorf("set status of organisation: %w", err)
		}
		db.OnCommit(tx, func() { s.bus.Publish(Changed, nil) })
		return nil
	})
}
