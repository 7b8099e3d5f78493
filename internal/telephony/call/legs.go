package call

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
)

// legRow is a leg with its references, which are stored as NULL if empty.
type legRow struct {
	Leg
	user, device, trunk string
}

func insertLeg(ctx context.Context, tx db.Querier, org, callID string, l legRow) error {
	const q = `INSERT INTO legs (org_id, id, call_id, role, user_id, device_id, trunk_id, number, status, sip_call_id, started_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`
	_, err := tx.Exec(ctx, q, org, l.ID, callID, l.Role, db.Null(l.user), db.Null(l.device), db.Null(l.trunk), l.Number,
		l.Status, l.SIPCallID, l.StartedAt)
	if err != nil {
		return fmt.Errorf("insert leg: %w", err)
	}
	return nil
}

// writeLegs inserts or updates legs by id.
func writeLegs(ctx context.Context, tx db.Querier, org, callID string, all []LegState) error {
	for len(all) > 0 {
		n := min(len(all), 2) // two, because most calls have two legs; so only two statements are prepared
		if err := writeLegBatch(ctx, tx, org, callID, all[:n]); err != nil {
			return fmt.Errorf("write legs of call %s: %w", callID, err)
		}
		all = all[n:]
	}
	return nil
}

func writeLegBatch(ctx context.Context, tx db.Querier, org, callID string, some []LegState) error {
	var args []any
	for _, l := range some {
		args = append(args, org, l.ID, callID, l.Role, db.Null(l.UserID), db.Null(l.DeviceID), db.Null(l.TrunkID), l.Number,
			l.Status, db.Null(l.Codec), l.SRTP, db.Null(l.HeldBy), l.SIPCallID, db.At(l.StartedAt), db.At(l.AnsweredAt),
			db.At(l.EndedAt), db.Null(l.EndReason), nullInt(l.SIPStatus), db.Null(l.Quality))
		args = append(args, l.Work.columns()...)
	}
	q := writeOneLeg
	if len(some) == 2 {
		q = writeTwoLegs
	}
	_, err := tx.Exec(ctx, q, args...)
	return err
}

// The statements that write one leg and two legs. insertLegs names org_id.
const (
	writeOneLeg  = insertLegs + legValues1 + onLegConflict
	writeTwoLegs = insertLegs + legValues1 + `, ` + legValues2 + onLegConflict

	insertLegs = `INSERT INTO legs (org_id, id, call_id, role, user_id, device_id, trunk_id, number, status, codec, srtp, held_by,
			sip_call_id, started_at, answered_at, ended_at, end_reason, sip_status, quality, talk_seconds, hold_seconds) VALUES `
	legValues1    = `($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)`
	legValues2    = `($22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42)`
	onLegConflict = ` ON CONFLICT (org_id, id) DO UPDATE SET role = excluded.role, user_id = excluded.user_id,
			device_id = excluded.device_id, trunk_id = excluded.trunk_id, number = excluded.number, status = excluded.status,
			codec = excluded.codec, srtp = excluded.srtp, held_by = excluded.held_by, sip_call_id = excluded.sip_call_id,
			answered_at = excluded.answered_at, ended_at = excluded.ended_at, end_reason = excluded.end_reason,
			sip_status = excluded.sip_status, quality = COALESCE(excluded.quality, legs.quality),
			talk_seconds = COALESCE(excluded.talk_seconds, legs.talk_seconds), hold_seconds = COALESCE(excluded.hold_seconds,
			legs.hold_seconds)`
)

// columns returns the talk and hold seconds; NULL if the user did not serve the call.
func (w *Work) columns() []any {
	if w == nil {
		return []any{nil, nil}
	}
	return []any{w.Talk, w.Hold}
}

// creditAgent counts for the last agent of a call the time that no leg has yet. A node that crashed could not divide it.
// A leg that left for another call ("transfer", without time) counts nothing here.
func creditAgent(ctx context.Context, tx db.Querier, e Ended) error {
	const q = `UPDATE legs SET talk_seconds = (SELECT CASE WHEN c.talk_seconds > d.talk THEN c.talk_seconds - d.talk ELSE 0 END
				FROM calls c, (SELECT COALESCE(SUM(talk_seconds), 0) AS talk FROM legs WHERE org_id = $1 AND call_id = $2) AS d
				WHERE c.org_id = $1 AND c.id = $2),
			hold_seconds = (SELECT CASE WHEN c.hold_seconds > d.hold THEN c.hold_seconds - d.hold ELSE 0 END
				FROM calls c, (SELECT COALESCE(SUM(hold_seconds), 0) AS hold FROM legs WHERE org_id = $1 AND call_id = $2) AS d
				WHERE c.org_id = $1 AND c.id = $2)
		WHERE org_id = $1 AND talk_seconds IS NULL AND COALESCE(end_reason, '') <> 'transfer' AND id = (SELECT MAX(l.id) FROM legs l
			JOIN calls c ON c.org_id = l.org_id AND c.id = l.call_id AND c.agent_id = l.user_id
			WHERE l.org_id = $1 AND l.call_id = $2 AND l.role <> 'caller' AND l.answered_at IS NOT NULL)`
	_, err := tx.Exec(ctx, q, e.Org, e.ID)
	if err != nil {
		return fmt.Errorf("count time of agent: %w", err)
	}
	return nil
}

// answerLegs sets the legs of a call to answered.
func answerLegs(ctx context.Context, tx db.Querier, a Answer) error {
	const q = `UPDATE legs SET status = 'answered', answered_at = $3, codec = $4 WHERE org_id = $1 AND call_id = $2`
	_, err := tx.Exec(ctx, q, a.Org, a.ID, db.At(a.At), db.Null(a.Codec))
	return err
}

func holdLeg(ctx context.Context, tx db.Querier, org, callID, role string, held bool) error {
	status, by := "answered", db.Null("")
	if held {
		status, by = "held", "peer"
	}
	const q = `UPDATE legs SET status = $4, held_by = $5 WHERE org_id = $1 AND call_id = $2 AND role = $3 AND ended_at IS NULL`
	_, err := tx.Exec(ctx, q, org, callID, role, status, by)
	return err
}

// endLegs ends the legs that have not ended yet.
func endLegs(ctx context.Context, tx db.Querier, e Ended) error {
	const q = `UPDATE legs SET status = 'ended', ended_at = $3, end_reason = $4
		WHERE org_id = $1 AND call_id = $2 AND ended_at IS NULL`
	_, err := tx.Exec(ctx, q, e.Org, e.ID, db.At(e.At), e.Reason)
	return err
}

const legColumns = `call_id, id, role, user_id, device_id, trunk_id, number, status, codec, srtp, held_by, sip_call_id, started_at,
	answered_at, ended_at, end_reason, sip_status, quality`

// legsOf reads the legs of several calls with one statement.
func legsOf(ctx context.Context, q db.Querier, org string, calls []Call) error {
	if len(calls) == 0 {
		return nil
	}
	at := map[string]int{}
	ids := make([]string, len(calls))
	for i, c := range calls {
		at[c.ID], ids[i] = i, c.ID
		calls[i].Legs = []Leg{}
	}
	const text = `SELECT ` + legColumns + ` FROM legs WHERE org_id = $1`
	f := db.Where(text, org).In("call_id", ids)
	statement, args := f.SQL()
	rows, err := q.Query(ctx, statement+" ORDER BY id", args...)
	if err != nil {
		return fmt.Errorf("list legs: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		id, l, err := scanLeg(rows)
		if err != nil {
			return fmt.Errorf("list legs: %w", err)
		}
		calls[at[id]].Legs = append(calls[at[id]].Legs, l)
	}
	return rows.Err()
}

func scanLeg(r row) (callID string, l Leg, err error) {
	var user, device, trunk, codec, held, reason, quality db.Null
	var answered, ended db.Time
	var status *int
	err = r.Scan(&callID, &l.ID, &l.Role, &user, &device, &trunk, &l.Number, &l.Status, &codec, &l.SRTP, &held, &l.SIPCallID,
		&l.StartedAt, &answered, &ended, &reason, &status, &quality)
	l.UserID, l.DeviceID, l.TrunkID, l.Codec = user.Ptr(), device.Ptr(), trunk.Ptr(), codec.Ptr()
	l.HeldBy, l.EndReason, l.AnsweredAt, l.EndedAt = held.Ptr(), reason.Ptr(), answered.Ptr(), ended.Ptr()
	l.SIPStatus, l.quality = status, string(quality)
	return callID, l, err
}
