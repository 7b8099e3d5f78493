// Package recording stores the recordings of calls, serves their audio, and deletes it at the end of its retention. It also has the API
// operations on recordings.
package recording

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/telephony/call"
)

// Recording is the audio of a call: the caller on the left channel, the answering party on the right.
type Recording struct {
	ID              string       `json:"id"`
	CallID          string       `json:"call_id"`
	Status          string       `json:"status" enum:"recording,paused,processing,available,failed,deleted"`
	Format          string       `json:"format" enum:"wav,opus,mp3"`
	Channels        int          `json:"channels"`
	SampleRateHz    int          `json:"sample_rate_hz"`
	DurationSeconds int          `json:"duration_seconds"`
	SizeBytes       int64        `json:"size_bytes"`
	URL             *string      `json:"url" doc:"Address of the audio that needs no credential, valid until url_expires_at"`
	URLExpiresAt    *db.Time     `json:"url_expires_at"`
	Pauses          []call.Pause `json:"pauses" nullable:"false"`
	Redactions      []Redaction  `json:"redactions" nullable:"false" doc:"Parts that were replaced by silence, by the redaction settings of the organisation"`
	Consent         string       `json:"consent"`
	Trigger         string       `json:"trigger" enum:"policy,flow,agent,api,supervisor"`
	SHA256          *string      `json:"sha256"`
	Encrypted       bool         `json:"encrypted"`
	LegalHold       bool         `json:"legal_hold"`
	RetentionUntil  *db.Time     `json:"retention_until"`
	StartedAt       db.Time      `json:"started_at"`
	EndedAt         *db.Time     `json:"ended_at"`
	AvailableAt     *db.Time     `json:"available_at"`
	Error           *event.Fault `json:"error" doc:"Why the recording failed, why audio is missing in it, or why it is not finished (node_lost)"`
	Truncated       bool         `json:"truncated" doc:"Audio is missing, because the server could not write all of it"`
	MissingSeconds  int          `json:"missing_seconds" doc:"Seconds of audio that are missing, rounded up; 0 unless truncated"`

	blob string
}

// Revision returns the version of a recording for its ETag. The URL is not part of it, because it is signed anew for
// each response.
func (r Recording) Revision() string {
	return fmt.Sprint(r.ID, r.Status, r.SizeBytes, r.LegalHold, r.RetentionUntil, len(r.Pauses), r.DurationSeconds, len(r.Redactions),
		r.Error != nil)
}

// insertRecording inserts a recording that begins. It clears the call's recording_ready, which refers to the new
// recording from then on.
func (s *Service) insertRecording(ctx context.Context, tx db.Querier, org, callID string, r call.NewRecording, at time.Time) error {
	var until db.Time
	if r.Retention > 0 {
		until = db.At(at.Add(r.Retention))
	}
	const q = `INSERT INTO recordings (org_id, id, call_id, status, format, channels, sample_rate_hz, duration_seconds, size_bytes,
			blob, pauses, consent, started_by, legal_hold, retention_until, started_at, node)
		VALUES ($1, $2, $3, 'recording', 'wav', $10, $11, 0, 0, $4, '[]', $5, $6, FALSE, $7, $8, $9) ON CONFLICT DO NOTHING`
	_, err := tx.Exec(ctx, q, org, r.ID, callID, r.Name, r.Consent, r.Trigger, until, db.At(at), s.cfg.Node, cmp.Or(r.Channels, 2),
		cmp.Or(r.SampleRate, 8000))
	if err != nil {
		return fmt.Errorf("start recording: %w", err)
	}
	return s.cfg.Calls.SetRecordingReady(ctx, tx, org, callID, "", false)
}

// StopRecordings ends the recordings of a call that are in progress. It implements call.RecordingStore.
func (s *Service) StopRecordings(ctx context.Context, tx db.Querier, org, callID string, at time.Time) error {
	const q = `UPDATE recordings SET status = 'processing', ended_at = $3
		WHERE org_id = $1 AND call_id = $2 AND status IN ('recording', 'paused')`
	_, err := tx.Exec(ctx, q, org, callID, db.At(at))
	return err
}

// Recorded stores the result of a recording. Only the first result of a recording has an effect. It waits for the
// commit, which shares a group commit with other writes (db.TxAsync). If a power failure loses the commit, Recover
// finds the file at the next start.
//
// If numbers are to be removed from recordings, the recording stays in processing, and Redact or Withhold finish it.
func (s *Service) Recorded(ctx context.Context, org, callID, id string, a call.Audio, then call.OnRecorded) error {
	policy, err := s.cfg.Redactions.Redaction(ctx, org)
	if err != nil {
		return fmt.Errorf("finish recording %s: %w", id, err)
	}
	written := s.cfg.DB.TxAsync(ctx, func(tx db.Querier) error {
		if err := s.cfg.Calls.Lock(ctx, tx, org, callID); err != nil {
			return err
		}
		changed, err := s.finishRecording(ctx, tx, org, callID, id, a, policy.Audio)
		if err != nil || !changed {
			return err
		}
		if policy.Audio && a.Err == nil {
			return s.runOnRecorded(ctx, tx, org, callID, then)
		}
		if err := s.publishRecording(ctx, tx, org, callID, id, a); err != nil {
			return err
		}
		return s.runOnRecorded(ctx, tx, org, callID, then)
	})
	if err := written(); err != nil {
		return fmt.Errorf("finish recording %s: %w", id, err)
	}
	return nil
}

func (s *Service) finishRecording(ctx context.Context, tx db.Querier, org, callID, id string, a call.Audio, redact bool) (bool, error) {
	status, redaction, fault := "available", "", recordingFault(a)
	available := db.At(s.cfg.Clock.Now())
	switch {
	case a.Err != nil:
		status, available = "failed", db.Time{}
	case redact:
		status, redaction, available = "processing", redactionPending, db.Time{}
	}
	const q = `UPDATE recordings SET status = $3, duration_seconds = $4, size_bytes = $5, sha256 = $6, available_at = $7, error = $8,
			ended_at = COALESCE(ended_at, $9), channels = COALESCE($10, channels), sample_rate_hz = COALESCE($11, sample_rate_hz),
			missing_ms = $12, redaction = $13
		WHERE org_id = $1 AND id = $2 AND status IN ('recording', 'paused', 'processing') AND redaction = '' RETURNING pauses`
	var pauses db.JSON[[]call.Pause]
	err := tx.QueryRow(ctx, q, org, id, status, wholeSeconds(a.Duration), a.Size, db.Null(a.SHA256), available, faultText(fault),
		db.At(s.cfg.Clock.Now()), intOrNull(a.Channels), intOrNull(a.SampleRate), a.Missing.Milliseconds(), redaction).Scan(&pauses)
	if db.IsNone(err) {
		return false, nil
	}
	if err != nil || a.Err != nil {
		return err == nil, err
	}
	if err := closePause(ctx, tx, org, id, pauses, a.Duration); err != nil {
		return true, err
	}
	if redact {
		return true, nil
	}
	return true, s.cfg.Calls.SetRecordingReady(ctx, tx, org, callID, id, true)
}

// closePause ends a pause that lasted until the end of the recording.
func closePause(ctx context.Context, tx db.Querier, org, id string, pauses db.JSON[[]call.Pause], d time.Duration) error {
	n := len(pauses.V)
	if n == 0 || pauses.V[n-1].ToMS > 0 {
		return nil
	}
	pauses.V[n-1].ToMS = max(int(d.Milliseconds()), pauses.V[n-1].FromMS)
	_, err := tx.Exec(ctx, `UPDATE recordings SET pauses = $3 WHERE org_id = $1 AND id = $2`, org, id, pauses)
	return err
}

// intOrNull stores 0 as NULL.
func intOrNull(n int) any {
	if n == 0 {
		return nil
	}
	return n
}

func wholeSeconds(d time.Duration) int { return int(d.Round(time.Second) / time.Second) }

// missingSeconds returns the seconds of audio that are missing, rounded up.
func missingSeconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

// recordingFault returns why a recording failed, or why audio is missing in it.
func recordingFault(a call.Audio) *event.Fault {
	switch {
	case a.Err != nil:
		return event.NewFault("recording_failed", a.Err)
	case a.Missing > 0:
		return &event.Fault{Code: "recording_truncated", Message: fmt.Sprintf("%s; %d s of audio are missing", a.Cut,
			missingSeconds(a.Missing))}
	}
	return nil
}

func faultText(f *event.Fault) any {
	if f == nil {
		return nil
	}
	return db.AsJSON(f)
}

func (s *Service) publishRecording(ctx context.Context, tx db.Querier, org, callID, id string, a call.Audio) error {
	e := event.CallRecording{CallID: callID, RecordingID: id, Status: "available", DurationSeconds: wholeSeconds(a.Duration),
		Channels: a.Channels, Format: "wav", Error: recordingFault(a), Truncated: a.Missing > 0, MissingSeconds: missingSeconds(a.Missing)}
	if a.Err != nil {
		e.Status = "failed"
	} else {
		sandbox, err := call.IsSandbox(ctx, tx, org, callID)
		if err != nil {
			return err
		}
		url := s.cfg.Links.Audio(id, sandbox)
		e.RecordingURL = &url
	}
	return s.cfg.Outbox.Publish(ctx, tx, org, e)
}

const recordingColumns = `id, call_id, status, format, channels, sample_rate_hz, duration_seconds, size_bytes, blob, pauses, consent,
	started_by, sha256, legal_hold, retention_until, started_at, ended_at, available_at, error, missing_ms, redactions, ` + lostNode

// lostNode is the column with the node that was lost before it finished the recording; NULL otherwise. It has the audio.
const lostNode = `CASE WHEN status = 'processing' THEN (SELECT n.id FROM nodes n
	WHERE n.id = recordings.node AND n.state IN ('evicted', 'gone')) END`

// nodeLost returns the reason of a recording that is not finished, because the node with its audio is lost.
func nodeLost(node string) *event.Fault {
	return &event.Fault{Code: "node_lost", Message: fmt.Sprintf("the server %s stopped before it finished the recording, and has the audio; "+
		"start it again, then it finishes the recording", node)}
}

// scanner is the common interface of QueryRow and Rows.
type scanner interface{ Scan(to ...any) error }

func scanRecording(r scanner) (Recording, error) {
	var x Recording
	var sha, lost db.Null
	var pauses db.JSON[[]call.Pause]
	var until, ended, available db.Time
	var wrong db.JSON[*event.Fault]
	var missing int64
	var redactions db.JSON[[]Redaction]
	err := r.Scan(&x.ID, &x.CallID, &x.Status, &x.Format, &x.Channels, &x.SampleRateHz, &x.DurationSeconds, &x.SizeBytes, &x.blob,
		&pauses, &x.Consent, &x.Trigger, &sha, &x.LegalHold, &until, &x.StartedAt, &ended, &available, &wrong, &missing, &redactions,
		&lost)
	x.SHA256, x.RetentionUntil, x.EndedAt, x.AvailableAt, x.Error = sha.Ptr(), until.Ptr(), ended.Ptr(), available.Ptr(), wrong.V
	x.Truncated, x.MissingSeconds = missing > 0, missingSeconds(time.Duration(missing)*time.Millisecond)
	if lost != "" {
		x.Error = nodeLost(string(lost))
	}
	x.Pauses = pauses.V
	if x.Pauses == nil {
		x.Pauses = []call.Pause{}
	}
	if x.Redactions = redactions.V; x.Redactions == nil {
		x.Redactions = []Redaction{}
	}
	return x, err
}

func getRecording(ctx context.Context, q db.Querier, org, id string) (Recording, error) {
	const text = `SELECT ` + recordingColumns + ` FROM recordings WHERE org_id = $1 AND id = $2`
	return scanRecording(q.QueryRow(ctx, text, org, id))
}

func recordingOf(ctx context.Context, q db.Querier, org, callID string) (Recording, error) {
	const text = `SELECT ` + recordingColumns + ` FROM recordings WHERE org_id = $1 AND call_id = $2 ORDER BY id DESC LIMIT 1`
	return scanRecording(q.QueryRow(ctx, text, org, callID))
}

// File opens the audio of a call's available recording, or returns db.ErrNone.
func (s *Service) File(ctx context.Context, org, callID string) (io.ReadSeekCloser, int64, error) {
	r, err := recordingOf(ctx, s.cfg.DB.Read(ctx), org, callID)
	if err != nil {
		return nil, 0, err
	}
	if r.Status != "available" {
		return nil, 0, db.ErrNone
	}
	return s.cfg.Files.Open(ctx, r.blob)
}
