package org

import (
	"context"
	"fmt"
	"math"

	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// Storage is the name of the quota for files, in 10⁹ bytes.
const Storage = "storage_gb"

// Gigabytes converts bytes to 10⁹ bytes, rounded to megabytes.
func Gigabytes(bytes int64) float64 { return math.Round(float64(bytes)/1e6) / 1e3 }

// CheckStorage returns plan_limit if an organisation has used up its storage. The size is cached for a few seconds,
// because calls wait for the check.
func (s *Service) CheckStorage(ctx context.Context, id string) error {
	o, err := s.Get(ctx, id)
	if err != nil {
		return fmt.Errorf("find organisation: %w", err)
	}
	most := o.Quota.StorageGB
	if most == nil {
		return nil
	}
	load := func() (int64, error) { return StoredBytes(ctx, s.db.Read(ctx), id) }
	used, err := s.storageCache.Get(id, load)
	if err != nil {
		return fmt.Errorf("count stored bytes: %w", err)
	}
	return checkFits(o.Plan, used, 1, *most)
}

// ReserveStorage returns plan_limit if a file of this size exceeds the quota. Call it in the transaction that inserts
// the file, before the insert. Concurrent additions of one organisation wait for each other.
func (s *Service) ReserveStorage(ctx context.Context, tx db.Querier, id string, size int64) error {
	if err := lockOrg(ctx, tx, id); err != nil {
		return err
	}
	o, err := get(ctx, tx, id)
	if err != nil {
		return fmt.Errorf("find organisation: %w", err)
	}
	most := s.plans.quota(o).StorageGB
	if most == nil {
		return nil
	}
	used, err := StoredBytes(ctx, tx, id)
	if err != nil {
		return fmt.Errorf("count stored bytes: %w", err)
	}
	return checkFits(o.Plan, used, max(size, 1), *most)
}

// StoredBytes returns the size of an organisation's files: recordings, voicemails, audio files, and exports that are
// not deleted. A recording counts when it is finished.
func StoredBytes(ctx context.Context, q db.Querier, id string) (bytes int64, err error) {
	const text = `SELECT CAST(
		(SELECT COALESCE(SUM(size_bytes), 0) FROM recordings WHERE org_id = $1 AND size_bytes > 0 AND status <> 'deleted')
		+ (SELECT COALESCE(SUM(size_bytes), 0) FROM voicemails WHERE org_id = $1 AND status <> 'deleted')
		+ (SELECT COALESCE(SUM(size_bytes), 0) FROM audio WHERE org_id = $1)
		+ (SELECT COALESCE(SUM(size_bytes), 0) FROM cdr_exports WHERE org_id = $1 AND status = 'ready')
		+ (SELECT COALESCE(SUM(size_bytes), 0) FROM person_exports WHERE org_id = $1 AND status = 'ready') AS BIGINT)`
	err = q.QueryRow(ctx, text, id).Scan(&bytes)
	return bytes, err
}

// checkFits returns plan_limit if the sum exceeds the quota.
func checkFits(plan string, used, more int64, most int) error {
	if used+more <= int64(most)*1_000_000_000 {
		return nil
	}
	return &op.Error{Code: "plan_limit", Detail: fmt.Sprintf("the plan %s allows %d GB of storage; delete recordings or sounds", plan,
		most), Extra: map[string]any{"limit": Storage, "allowed": most, "used": Gigabytes(used)}}
}
