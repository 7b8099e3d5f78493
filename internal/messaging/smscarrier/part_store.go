package smscarrier

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/protocol/smpp"
)

// dbPartStore stores the parts of received long messages in the database until they are complete, so that no
// acknowledged part is lost.
type dbPartStore struct {
	service *Service
	info    CarrierInfo
}

// maxWaitingParts limits the incomplete parts of one carrier.
const maxWaitingParts = 5000

// completedPartTTL is the time for which repeated parts of a complete message are recognised.
const completedPartTTL = 5 * time.Minute

// partKey returns the key of a message whose parts are collected.
func partKey(k smpp.Key) string {
	return fmt.Sprintf("%s %s %d %t %d", k.From, k.To, k.Segment.Reference, k.Segment.Wide, k.Segment.Total)
}

func fragmentDigest(f smpp.Fragment) string {
	h := sha256.Sum256(append([]byte{f.Message.DataCoding}, f.Octets...))
	return hex.EncodeToString(h[:8])
}

// storedPart is a row.
type storedPart struct {
	number   int
	sum      string
	fragment smpp.Fragment
	done     bool
	first    db.Time
}

// Add stores a part. If a part with the same number but another text exists, a new message begins, because the sender
// has reused the reference.
func (p *dbPartStore) Add(ctx context.Context, f smpp.Fragment) (a smpp.AddResult, err error) {
	err = p.service.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		a, err = p.add(ctx, tx, f)
		return err
	})
	return a, err
}

func (p *dbPartStore) add(ctx context.Context, tx db.Querier, f smpp.Fragment) (smpp.AddResult, error) {
	all, err := p.rows(ctx, tx, partKey(f.Key))
	if err != nil {
		return smpp.AddResult{}, err
	}
	had, fresh := false, false
	for _, x := range all {
		if x.number == int(f.Sequence) {
			had, fresh = x.sum == fragmentDigest(f), x.sum != fragmentDigest(f)
		}
	}
	if fresh || len(all) > 0 && all[0].done && !had {
		if err := p.forget(ctx, tx, partKey(f.Key)); err != nil {
			return smpp.AddResult{}, err
		}
		all = nil
	}
	if had && all[0].done {
		return smpp.AddResult{Duplicate: true}, nil
	}
	if !had {
		if err := p.insert(ctx, tx, f, all); err != nil {
			return smpp.AddResult{}, err
		}
		if all, err = p.rows(ctx, tx, partKey(f.Key)); err != nil {
			return smpp.AddResult{}, err
		}
	}
	a := smpp.AddResult{Duplicate: had}
	if len(all) == int(f.Key.Segment.Total) {
		a.Complete = fragments(all)
	}
	return a, nil
}

func fragments(all []storedPart) (out []smpp.Fragment) {
	for _, x := range all {
		out = append(out, x.fragment)
	}
	return out
}

func (p *dbPartStore) insert(ctx context.Context, tx db.Querier, f smpp.Fragment, others []storedPart) error {
	waiting := 0
	const count = `SELECT COUNT(*) FROM sms_incoming_parts WHERE org_id = $1 AND carrier_id = $2 AND NOT done`
	if err := tx.QueryRow(ctx, count, p.info.Org, p.info.ID).Scan(&waiting); err != nil {
		return fmt.Errorf("count parts: %w", err)
	}
	if waiting >= maxWaitingParts {
		return fmt.Errorf("%d parts of incomplete messages are stored, which is the limit", waiting)
	}
	now := db.At(p.service.cfg.Clock.Now())
	first := now
	if len(others) > 0 {
		first = others[0].first
	}
	const q = `INSERT INTO sms_incoming_parts (org_id, carrier_id, message, part, sum, body, done, first_at, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`
	_, err := tx.Exec(ctx, q, p.info.Org, p.info.ID, partKey(f.Key), int(f.Sequence), fragmentDigest(f), db.AsJSON(f), false, first, now)
	if err != nil {
		return fmt.Errorf("keep part: %w", err)
	}
	return nil
}

const partColumns = `SELECT part, sum, body, done, first_at FROM sms_incoming_parts WHERE org_id = $1 AND carrier_id = $2`

func (p *dbPartStore) rows(ctx context.Context, q db.Querier, message string) ([]storedPart, error) {
	rows, err := q.Query(ctx, partColumns+` AND message = $3 ORDER BY part`, p.info.Org, p.info.ID, message)
	if err != nil {
		return nil, fmt.Errorf("read parts: %w", err)
	}
	defer rows.Close()
	var all []storedPart
	for rows.Next() {
		var x storedPart
		var body db.JSON[smpp.Fragment]
		if err := rows.Scan(&x.number, &x.sum, &body, &x.done, &x.first); err != nil {
			return nil, err
		}
		x.fragment = body.V
		all = append(all, x)
	}
	return all, rows.Err()
}

func (p *dbPartStore) forget(ctx context.Context, tx db.Querier, message string) error {
	const q = `DELETE FROM sms_incoming_parts WHERE org_id = $1 AND carrier_id = $2 AND message = $3`
	_, err := tx.Exec(ctx, q, p.info.Org, p.info.ID, message)
	return err
}

// Done marks a delivered message as complete, so that repeated parts are recognised. Its texts are deleted.
func (p *dbPartStore) Done(ctx context.Context, k smpp.Key, handedOn bool) error {
	if !handedOn {
		return nil
	}
	return p.service.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		const q = `UPDATE sms_incoming_parts SET done = TRUE, body = '{}' WHERE org_id = $1 AND carrier_id = $2 AND message = $3`
		_, err := tx.Exec(ctx, q, p.info.Org, p.info.ID, partKey(k))
		return err
	})
}

// Expired returns incomplete messages whose first part came before a time, and deletes old complete ones.
func (p *dbPartStore) Expired(ctx context.Context, before time.Time) ([][]smpp.Fragment, error) {
	if err := p.deleteOld(ctx); err != nil {
		return nil, fmt.Errorf("forget parts: %w", err)
	}
	names, err := p.expiredKeys(ctx, before)
	var all [][]smpp.Fragment
	for _, message := range names {
		rows, err := p.rows(ctx, p.service.cfg.DB.Read(ctx), message)
		if err != nil {
			return nil, err
		}
		if len(rows) > 0 {
			all = append(all, fragments(rows))
		}
	}
	return all, err
}

// deleteOld deletes old complete messages. It deletes nothing while the clock is not trusted.
func (p *dbPartStore) deleteOld(ctx context.Context) error {
	if p.service.cfg.MayDelete.Check() != nil {
		return nil
	}
	return p.service.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		const q = `DELETE FROM sms_incoming_parts WHERE org_id = $1 AND carrier_id = $2 AND done AND first_at < $3`
		_, err := tx.Exec(ctx, q, p.info.Org, p.info.ID, db.At(p.service.cfg.Clock.Now().Add(-completedPartTTL)))
		return err
	})
}

func (p *dbPartStore) expiredKeys(ctx context.Context, before time.Time) (names []string, err error) {
	const q = `SELECT DISTINCT message FROM sms_incoming_parts WHERE org_id = $1 AND carrier_id = $2 AND NOT done AND first_at < $3 LIMIT 100`
	return db.Strings(ctx, p.service.cfg.DB.Read(ctx), "find incomplete messages", q, p.info.Org, p.info.ID, db.At(before))
}
