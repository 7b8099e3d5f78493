package call

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/visibility"
)

func insertCall(ctx context.Context, tx db.Querier, n New, node string) error {
	const q = `INSERT INTO calls (org_id, id, direction, status, stage, source, from_number, from_name, to_number, number_id,
			device_id, trunk_id, user_id, started_at, ringing_at, ring_seconds, queue_seconds, hold_seconds, talk_seconds,
			total_seconds, recording_state, recording_ready, consent, tags, notes_count, metadata, client_reference, sandbox, node,
			contact_id, contact)
		VALUES ($1, $2, $3, $15, 'agent', $4, $5, $6, $7, $8, $9, $10, $11, $12, $16, 0, 0, 0, 0, 0,
			'off', FALSE, 'not_required', '[]', 0, $17, $18, $13, $14, $19, $20)`
	_, err := tx.Exec(ctx, q, n.Org, n.ID, string(n.Direction), n.Source, n.From, db.Null(n.FromName), n.To, db.Null(n.NumberID),
		db.Null(n.DeviceID), db.Null(n.TrunkID), db.Null(n.UserID), db.At(n.StartedAt), n.Sandbox, node, string(n.status()),
		n.ringingAt(), db.AsJSON(n.metadata()), db.Null(n.Reference), contactID(n.contact), contactText(n.contact))
	return err
}

func (n New) status() Status {
	if n.Status == "" {
		return Ringing
	}
	return n.Status
}

func (n New) metadata() map[string]string {
	if n.Metadata == nil {
		return map[string]string{}
	}
	return n.Metadata
}

// hasCaller reports whether the call begins with a caller's leg.
func (n New) hasCaller() bool { return n.CallerLeg != "" || n.status() != Queued }

// ringingAt returns the start of the call, or zero if it does not ring yet.
func (n New) ringingAt() db.Time {
	if n.status() == Queued {
		return db.Time{}
	}
	return db.At(n.StartedAt)
}

// markAnswered stores the answer. It returns false if the call was not queued or ringing.
func markAnswered(ctx context.Context, tx db.Querier, a Answer, by string) (bool, error) {
	const q = `UPDATE calls SET status = 'in_progress', answered_at = $3, ring_seconds = $4, agent_id = $5, agent_name = $6,
			agent_extension = $7, answered_by = $8, device_id = COALESCE($9, device_id), trunk_id = COALESCE($10, trunk_id)
		WHERE org_id = $1 AND id = $2 AND status IN ('queued', 'ringing')`
	r, err := tx.Exec(ctx, q, a.Org, a.ID, db.At(a.At), seconds(a.Ring), db.Null(a.By.UserID), db.Null(a.By.Name),
		db.Null(a.By.Extension), by, db.Null(a.By.DeviceID), db.Null(a.By.TrunkID))
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	return n > 0, err
}

func markHeld(ctx context.Context, tx db.Querier, org, id string, at time.Time) error {
	const q = `UPDATE calls SET status = 'on_hold', held_since = $3 WHERE org_id = $1 AND id = $2 AND status = 'in_progress'`
	_, err := tx.Exec(ctx, q, org, id, db.At(at))
	return err
}

// clearHeld takes the call off hold unless another side still holds it.
func clearHeld(ctx context.Context, tx db.Querier, org, id string, at time.Time) error {
	const q = `UPDATE calls SET status = 'in_progress', held_since = NULL,
			hold_seconds = hold_seconds + ($3 - held_since + 500000) / 1000000
		WHERE org_id = $1 AND id = $2 AND status = 'on_hold' AND NOT EXISTS (SELECT 1 FROM legs
			WHERE org_id = $1 AND call_id = $2 AND status = 'held' AND ended_at IS NULL)`
	_, err := tx.Exec(ctx, q, org, id, db.At(at))
	return err
}

// endCall writes the final state. It returns db.ErrNone if the call has ended already. For a call without a recording
// it sets announced_at, because call.ended is then published once, with the end.
func endCall(ctx context.Context, tx db.Querier, e Ended, now time.Time) (Call, error) {
	var total, ring, talk time.Duration
	total = e.At.Sub(e.StartedAt)
	ring = total
	if e.Answered() {
		ring = e.AnsweredAt.Sub(e.StartedAt)
		talk = max(e.At.Sub(e.AnsweredAt)-e.Hold, 0)
	}
	var missed db.Null
	if e.Status() == Missed {
		missed = db.Null(e.missedReason())
	}
	last := []any{string(e.Status()), db.NewID("cdr"), db.At(e.At), seconds(ring), seconds(e.Hold), seconds(talk), seconds(total), e.Reason,
		db.Null(e.HangupBy), missed, nullInt(e.SIPStatus), nullInt(e.Q850), qualityText(e.quality()), db.Null(e.recordingID()), db.At(now)}
	args := []any{e.Org, e.ID}
	if e.Revision == 0 {
		return scanCall(tx.QueryRow(ctx, endWithoutState, append(args, last...)...))
	}
	if e.StateWritten {
		c, err := scanCall(tx.QueryRow(ctx, endUnchangedState, append(append([]any{e.Org, e.ID}, last...), e.Revision)...))
		if !db.IsNone(err) {
			return c, err
		}
	}
	args = append(append(args, e.Revision), stateArgs(e.State)...)
	return scanCall(tx.QueryRow(ctx, endWithState, append(args, last...)...))
}

// recordingID returns the id of the call's recording according to the end or its state; "" if none.
func (e Ended) recordingID() string {
	if e.Recording == "" {
		return e.State.RecordingID
	}
	return e.Recording
}

// The statements that end a call. endWithState also writes the last state. endWithoutState is for calls without a
// Change. endUnchangedState is for calls with a stored last state, which is the usual case: columns that are not set
// cause no index updates.
var (
	// tenant: endWhere names it
	endUnchangedState = `UPDATE calls SET ` + endColumns(3) + endWhere + fmt.Sprintf(" AND revision = $%d", 3+endArgs) + endReturning
	// tenant: endWhere names it
	endWithoutState = `UPDATE calls SET ` + endColumns(3) + endWhere + endReturning
	// tenant: endWhere names it
	endWithState = `UPDATE calls SET revision = $3, ` + stateColumns + `, ` + endColumns(19) + endWhere + endReturning
)

// endArgs is the number of arguments of endColumns.
const endArgs = 15

const (
	endWhere     = ` WHERE org_id = $1 AND id = $2 AND ended_at IS NULL`
	endReturning = ` RETURNING ` + callColumns
)

// endColumns returns the columns that the end of a call sets. Their placeholders are numbered from first.
func endColumns(first int) string {
	var b strings.Builder
	set := func(format string) {
		fmt.Fprintf(&b, format, first)
		first++
	}
	for _, c := range strings.Fields(`status cdr_id ended_at ring_seconds hold_seconds talk_seconds total_seconds end_reason hangup_by
			missed_reason sip_status q850_cause quality`) {
		set(c + " = $%d, ")
	}
	recording := fmt.Sprintf("COALESCE($%d, recording_id) IS NULL", first)
	first++
	b.WriteString("stage = 'none', held_since = NULL, recording_state = CASE WHEN " + recording + " THEN 'off' ELSE 'stopped' END, ")
	set("announced_at = CASE WHEN " + recording + " THEN $%d ELSE announced_at END")
	return b.String()
}

// nullInt stores 0 as NULL.
func nullInt(n int) any {
	if n == 0 {
		return nil
	}
	return n
}

func qualityText(q *event.Quality) any {
	if q == nil {
		return nil
	}
	b, _ := json.Marshal(q)
	return string(b)
}

// callColumns lists the columns that scanCall reads, in its order.
const callColumns = `id, cdr_id, direction, status, stage, source, from_number, from_name, to_number, number_id, flow_id, queue_id,
	device_id, trunk_id, user_id, agent_id, agent_name, agent_extension, answered_by, started_at, ringing_at, answered_at, ended_at,
	ring_seconds, queue_seconds, hold_seconds, talk_seconds, total_seconds, held_since, end_reason, hangup_by, missed_reason,
	disposition, sip_status, q850_cause, quality, recording_state, recording_id, recording_ready, consent, transcript_id,
	ai_summary, sentiment, tags, notes_count, metadata, client_reference, sandbox, announced_at, muted, transfer, transferred_to, machine,
	contact, flow_version, voicemail_id`

// row is the common interface of QueryRow and Rows.
type row interface{ Scan(to ...any) error }

func scanCall(r row) (Call, error) {
	var c Call
	var cdr, fromName, numberID, flowID, queueID, deviceID, trunkID, userID, agentID, agentName, agentExt, answeredBy db.Null
	var endReason, hangupBy, missed, disposition, recordingID, transcriptID, summary, sentiment, reference db.Null
	var ringing, answered, ended, held, announced db.Time
	var quality db.JSON[*event.Quality]
	var tags db.JSON[[]string]
	var metadata db.JSON[map[string]string]
	var transferredTo, voicemail db.Null
	var transfer db.JSON[*TransferStatus]
	var contact db.JSON[*event.Contact]
	var ready bool
	var sipStatus, q850, flowVersion sql.NullInt64
	err := r.Scan(&c.ID, &cdr, &c.Direction, &c.Status, &c.Stage, &c.Source, &c.FromNumber, &fromName, &c.ToNumber, &numberID, &flowID,
		&queueID, &deviceID, &trunkID, &userID, &agentID, &agentName, &agentExt, &answeredBy, &c.StartedAt, &ringing, &answered, &ended,
		&c.RingSeconds, &c.QueueSeconds, &c.HoldSeconds, &c.TalkDurationSeconds, &c.TotalSeconds, &held, &endReason, &hangupBy, &missed,
		&disposition, &sipStatus, &q850, &quality, &c.Recording.State, &recordingID, &ready, &c.Recording.Consent, &transcriptID,
		&summary, &sentiment, &tags, &c.NotesCount, &metadata, &reference, &c.Sandbox, &announced,
		&c.Muted, &transfer, &transferredTo, &c.AnsweredByMachine, &contact, &flowVersion, &voicemail)
	if err != nil {
		return c, err
	}
	c.FromName, c.NumberID, c.FlowID, c.QueueID = fromName.Ptr(), numberID.Ptr(), flowID.Ptr(), queueID.Ptr()
	c.DeviceID, c.UserID, c.AgentID = deviceID.Ptr(), userID.Ptr(), agentID.Ptr()
	c.RingingAt, c.AnsweredAt, c.EndedAt, c.HeldSince = ringing.Ptr(), answered.Ptr(), ended.Ptr(), held.Ptr()
	c.Held = c.Status == OnHold
	c.EndReason, c.HangupBy, c.MissedReason, c.Disposition = endReason.Ptr(), hangupBy.Ptr(), missed.Ptr(), disposition.Ptr()
	c.SIPStatus, c.Q850Cause, c.Quality = intPtr(sipStatus), intPtr(q850), quality.V
	c.Recording.RecordingID, c.TranscriptID = recordingID.Ptr(), transcriptID.Ptr()
	c.AISummary, c.Sentiment, c.ClientReference = summary.Ptr(), sentiment.Ptr(), reference.Ptr()
	c.Tags, c.Metadata, c.Transfer, c.Contact = tags.V, metadata.V, transfer.V, contact.V
	if c.Tags == nil {
		c.Tags = []string{}
	}
	if ready {
		c.RecordingURL = recordingID.Ptr() // the id; setRecordingURL replaces it by the URL
	}
	c.internal = internalColumns{CDRID: string(cdr), TrunkID: string(trunkID), AgentName: string(agentName),
		AgentExtension: string(agentExt),
		AnsweredBy:     string(answeredBy), EndPublished: !announced.IsZero(), TransferredTo: string(transferredTo),
		FlowVersion: intPtr(flowVersion), VoicemailID: string(voicemail)}
	return c, nil
}

func intPtr(n sql.NullInt64) *int {
	if !n.Valid {
		return nil
	}
	i := int(n.Int64)
	return &i
}

func getCall(ctx context.Context, q db.Querier, org, id string) (Call, error) {
	const text = `SELECT ` + callColumns + ` FROM calls WHERE org_id = $1 AND id = $2`
	return scanCall(q.QueryRow(ctx, text, org, id))
}

// getCDR finds an ended call by its record's id or its own.
func getCDR(ctx context.Context, q db.Querier, org, id string) (Call, error) {
	if strings.HasPrefix(id, "call_") {
		const byCall = `SELECT ` + callColumns + ` FROM calls WHERE org_id = $1 AND id = $2 AND cdr_id IS NOT NULL`
		return scanCall(q.QueryRow(ctx, byCall, org, id))
	}
	const byRecord = `SELECT ` + callColumns + ` FROM calls WHERE org_id = $1 AND cdr_id = $2`
	return scanCall(q.QueryRow(ctx, byRecord, org, id))
}

func queryCalls(ctx context.Context, q db.Querier, f *db.Filter) ([]Call, error) {
	text, args := f.SQL()
	rows, err := q.Query(ctx, text, args...)
	if err != nil {
		return nil, fmt.Errorf("list calls: %w", err)
	}
	defer rows.Close()
	var all []Call
	for rows.Next() {
		c, err := scanCall(rows)
		if err != nil {
			return nil, fmt.Errorf("list calls: %w", err)
		}
		all = append(all, c)
	}
	return all, rows.Err()
}

// maxLive is the maximum number of calls in a Snapshot.
const maxLive = 5000

func liveCalls(ctx context.Context, q db.Querier, org string, v visibility.View) ([]Call, error) {
	const text = `SELECT ` + callColumns + ` FROM calls WHERE org_id = $1 AND ended_at IS NULL`
	f := v.Narrow(db.Where(text, org), "id")
	return queryCalls(ctx, q, f.Page("started_at", true, nil, "", maxLive-1))
}
