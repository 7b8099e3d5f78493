package smppserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/protocol/smpp"
)

// maxParts limits the stored parts of an application.
const maxParts = 5000

// partStore stores the parts of long messages in the database until they are complete. Each part is acknowledged
// after its commit.
type partStore struct{ s *Service }

// partKey returns the key of a message.
func partKey(k smpp.Key) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %v", k.Account, k.From, k.To, k.Segment))
	return hex.EncodeToString(sum[:])
}

func checksum(f smpp.Fragment) string {
	sum := sha256.Sum256(append([]byte{f.Message.DataCoding}, f.Octets...))
	return hex.EncodeToString(sum[:8])
}

type partRow struct {
	fragment db.JSON[smpp.Fragment]
	checksum string
	done     bool
}

// Add stores a part. A repeated part gets the identifier that it had. If a part with the same number but another text
// exists, a new message begins. The complete message is returned again until Done is called.
func (p partStore) Add(ctx context.Context, f smpp.Fragment) (a smpp.AddResult, err error) {
	org, id := splitAccount(f.Key.Account)
	key := partKey(f.Key)
	err = p.s.cfg.DB.Tx(ctx, func(tx db.Querier) (err error) {
		if err := lockApplication(ctx, tx, org, id); err != nil {
			return err
		}
		had, err := p.rows(ctx, tx, org, id, key)
		if err != nil {
			return err
		}
		a, err = p.add(ctx, tx, f, key, had)
		return err
	})
	return a, err
}

func (p partStore) add(ctx context.Context, tx db.Querier, f smpp.Fragment, key string, had map[int]partRow) (smpp.AddResult, error) {
	org, id := splitAccount(f.Key.Account)
	old, there := had[int(f.Sequence)]
	other := there && old.checksum != checksum(f)
	if there && !other && old.done {
		heard, err := p.responseReceived(ctx, tx, org, f, old.fragment.V.MessageID)
		if err != nil || !heard {
			return smpp.AddResult{Duplicate: true, MessageID: old.fragment.V.MessageID}, err
		}
		other = true
	}
	if other {
		if err := p.forget(ctx, tx, org, id, key); err != nil {
			return smpp.AddResult{}, err
		}
		had, there = map[int]partRow{}, false
	}
	a := smpp.AddResult{Duplicate: there, MessageID: f.MessageID}
	if there {
		a.MessageID = old.fragment.V.MessageID
	} else if err := p.insert(ctx, tx, org, id, key, f); err != nil {
		return a, err
	}
	f.MessageID = a.MessageID
	had[int(f.Sequence)] = partRow{fragment: db.AsJSON(f)}
	a.Complete = completeMessage(had, int(f.Key.Segment.Total))
	return a, nil
}

// responseReceived reports whether the application received the response to a part of a completed message. If it did,
// an equal part belongs to a new message with the same reference. If it did not, the part is a repetition; this is
// accepted once.
func (p partStore) responseReceived(ctx context.Context, tx db.Querier, org string, f smpp.Fragment, id string) (bool, error) {
	var bind db.Null
	err := tx.QueryRow(ctx, `SELECT bind FROM sms_submissions WHERE org_id = $1 AND id = $2`, org, id).Scan(&bind)
	if err != nil && !db.IsNone(err) {
		return false, fmt.Errorf("find submission: %w", err)
	}
	if bind == "" || string(bind) == f.Bind || p.s.server.IsBound(f.Key.Account, string(bind)) {
		return true, nil
	}
	_, err = tx.Exec(ctx, `UPDATE sms_submissions SET bind = $3, node = $4 WHERE org_id = $1 AND id = $2`, org, id, f.Bind, p.s.cfg.Node)
	return false, err
}

// completeMessage returns the parts in order if all exist, else nil.
func completeMessage(had map[int]partRow, total int) (all []smpp.Fragment) {
	for n := 1; n <= total; n++ {
		r, ok := had[n]
		if !ok {
			return nil
		}
		all = append(all, r.fragment.V)
	}
	return all
}

func (p partStore) rows(ctx context.Context, tx db.Querier, org, id, key string) (map[int]partRow, error) {
	const q = `SELECT sequence, fragment, checksum, done FROM sms_parts WHERE org_id = $1 AND application_id = $2 AND part_key = $3`
	rows, err := tx.Query(ctx, q, org, id, key)
	if err != nil {
		return nil, fmt.Errorf("find parts: %w", err)
	}
	defer rows.Close()
	all := map[int]partRow{}
	for rows.Next() {
		var n int
		var r partRow
		if err := rows.Scan(&n, &r.fragment, &r.checksum, &r.done); err != nil {
			return nil, err
		}
		all[n] = r
	}
	return all, rows.Err()
}

func (p partStore) insert(ctx context.Context, tx db.Querier, org, id, key string, f smpp.Fragment) error {
	n := 0
	const count = `SELECT COUNT(*) FROM sms_parts WHERE org_id = $1 AND application_id = $2`
	if err := tx.QueryRow(ctx, count, org, id).Scan(&n); err != nil {
		return err
	}
	if n >= maxParts {
		return smpp.QueueFull
	}
	const q = `INSERT INTO sms_parts (org_id, application_id, part_key, sequence, id, peer, fragment, checksum, done, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, FALSE, $9)`
	_, err := tx.Exec(ctx, q, org, id, key, int(f.Sequence), f.MessageID, f.Message.Destination.String(), db.AsJSON(f), checksum(f),
		db.At(p.s.cfg.Clock.Now()))
	if err != nil {
		return fmt.Errorf("write part: %w", err)
	}
	return nil
}

func (p partStore) forget(ctx context.Context, tx db.Querier, org, id, key string) error {
	_, err := tx.Exec(ctx, `DELETE FROM sms_parts WHERE org_id = $1 AND application_id = $2 AND part_key = $3`, org, id, key)
	return err
}

// Done marks a message as complete. If it was not accepted, it is passed on again when its last part is repeated.
func (p partStore) Done(ctx context.Context, k smpp.Key, handedOn bool) error {
	if !handedOn {
		return nil
	}
	org, id := splitAccount(k.Account)
	return p.s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		const q = `UPDATE sms_parts SET done = TRUE WHERE org_id = $1 AND application_id = $2 AND part_key = $3`
		_, err := tx.Exec(ctx, q, org, id, partKey(k))
		return err
	})
}

// maxExpiredParts limits the parts that Expired reads. It exceeds the 255 parts of the longest message.
const maxExpiredParts = 1000

// Expired returns the incomplete messages whose first part came before a time, and deletes complete ones.
func (p partStore) Expired(ctx context.Context, before time.Time) (late [][]smpp.Fragment, err error) {
	if err := p.deleteOld(ctx, before); err != nil {
		return nil, err
	}
	// tenant: parts of all applications expire
	const q = `SELECT fragment FROM sms_parts p WHERE done = FALSE AND EXISTS (SELECT 1 FROM sms_parts o WHERE o.org_id = p.org_id
			AND o.application_id = p.application_id AND o.part_key = p.part_key AND o.created_at < $1)
		ORDER BY org_id, application_id, part_key, sequence LIMIT $2`
	rows, err := p.s.cfg.DB.Read(ctx).Query(ctx, q, db.At(before), maxExpiredParts)
	if err != nil {
		return nil, fmt.Errorf("find late parts: %w", err)
	}
	defer rows.Close()
	n := 0
	for ; rows.Next(); n++ {
		var f db.JSON[smpp.Fragment]
		if err := rows.Scan(&f); err != nil {
			return nil, err
		}
		if n := len(late); n > 0 && late[n-1][0].Key == f.V.Key {
			late[n-1] = append(late[n-1], f.V)
			continue
		}
		late = append(late, []smpp.Fragment{f.V})
	}
	if n == maxExpiredParts { // the last message may have more parts: the next call returns it
		late = late[:len(late)-1]
	}
	return late, rows.Err()
}

// deleteOld deletes expired parts and submissions. It deletes nothing while the clock is not trusted.
func (p partStore) deleteOld(ctx context.Context, before time.Time) error {
	if p.s.cfg.MayDelete.Check() != nil {
		return nil
	}
	return p.s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		// tenant: parts of all applications expire
		const q = `DELETE FROM sms_parts WHERE done = TRUE AND created_at < $1 OR created_at < $2`
		if _, err := tx.Exec(ctx, q, db.At(before), db.At(p.s.cfg.Clock.Now().Add(-duplicateWindow))); err != nil {
			return err
		}
		// tenant: submissions of all applications expire
		_, err := tx.Exec(ctx, `DELETE FROM sms_submissions WHERE created_at < $1`, db.At(p.s.cfg.Clock.Now().Add(-submissionRetention)))
		return err
	})
}
