package org

import (
	"context"
	"fmt"
	"math"

	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// Storage is the limit of a quota on what is kept in files, in 10⁹ bytes.
const Storage = "storage_gb"

// Gigabytes is a size in 10⁹ bytes, to the megabyte.
func Gigabytes(bytes int64) float64 { return math.Round(float64(bytes)/1e6) / 1e3 }

// Room reports with plan_limit that an organisation has used up its storage. What it sees may be a few moments old: it is asked
// on the way of calls.
func (s *Service) Room(ctx context.Context, id string) error {
	o, err := s.Get(ctx, id)
	if err != nil {
		return fmt.Errorf("find organisation: %w", err)
	}
	most := o.Quota.StorageGB
	if most == nil || s.Stored == nil {
		return nil
	}
	load := func() (int64, error) { return s.Stored(ctx, s.db.Read(ctx), id) }
	used, err := s.stored.Get(id, load)
	if err != nil {
		return fmt.Errorf("count stored bytes: %w", err)
	}
	return fits(o.Plan, used, 1, *most)
}

// AdmitBytes allows a file of a size, or refuses with plan_limit. It is called in the transaction that makes the file known,
// before it is: additions of one organisation wait for each other.
func (s *Service) AdmitBytes(ctx context.Context, tx db.Querier, id string, size int64) error {
	o, err := get(ctx, tx, id)
	if err != nil {
		return fmt.Errorf("find organisation: %w", err)
	}
	most := s.plans.quota(o).StorageGB
	if most == nil || s.Stored == nil {
		return nil
	}
	if err := takeTurn(ctx, tx, id); err != nil {
		return err
	}
	used, err := s.Stored(ctx, tx, id)
	if err != nil {
		return fmt.Errorf("count stored bytes: %w", err)
	}
	return fits(o.Plan, used, max(size, 1), *most)
}

// fits refuses what would be more than the plan allows.
func fits(plan string, used, more int64, most int) error {
	if used+more <= int64(most)*1_000_000_000 {
		return nil
	}
	return &op.Error{Code: "plan_limit", Detail: fmt.Sprintf("the plan %s allows %d GB of storage; delete recordings or sounds", plan, most),
		Extra: map[string]any{"limit": Storage, "allowed": most, "used": Gigabytes(used)}}
}
