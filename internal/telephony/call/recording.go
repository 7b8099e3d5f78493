package call

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
)

// Files is the store of recording and export files.
type Files interface {
	Path(name string) (string, error)
	Open(ctx context.Context, name string) (io.ReadSeekCloser, int64, error)
	Delete(ctx context.Context, name string) error
}

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
	Pauses          []Pause      `json:"pauses" nullable:"false"`
	Consent         string       `json:"consent"`
	Trigger         string       `json:"trigger" enum:"policy,flow,agent,api,supervisor"`
	SHA256          *string      `json:"sha256"`
	Encrypted       bool         `json:"encrypted"`
	LegalHold       bool         `json:"legal_hold"`
	RetentionUntil  *db.Time     `json:"retention_until"`
	StartedAt       db.Time      `json:"started_at"`
	EndedAt         *db.Time     `json:"ended_at"`
	AvailableAt     *db.Time     `json:"available_at"`
	Error           *event.Fault `json:"error"`

	blob string
}

// Revision returns the version of a recording for its ETag. The URL is not part of it, because it is signed anew for
// each response.
func (r Recording) Revision() string {
	return fmt.Sprint(r.ID, r.Status, r.SizeBytes, r.LegalHold, r.RetentionUntil, len(r.Pauses), r.DurationSeconds)
}

// Pause is a part of the call that was not recorded.
type Pause struct {
	FromMS int    `json:"from_ms"`
	ToMS   int    `json:"to_ms" doc:"0 while it lasts"`
	Reason string `json:"reason"`
}

// NewRecording describes a recording that begins.
type NewRecording struct {
	ID        string
	Name      string // in the blob store
	Consent   string
	Trigger   string
	Retention time.Duration // 0: for ever

	Channels   int // 0: 2
	SampleRate int // Hz; 0: 8000
}

// BlobName returns the name of a call's recording in the blob store.
func BlobName(org, callID string, at time.Time) string {
	return fmt.Sprintf("%s/%s/%s.wav", org, at.UTC().Format("2006/01"), callID)
}

// Audio describes the file of a finished recording. Err is set if the recording failed.
type Audio struct {
	Duration   time.Duration
	Size       int64
	SHA256     string
	SampleRate int
	Channels   int
	Err        error
}

// OnRecorded is called once per recorded call: in the transaction in which its last recording becomes available or
// fails, or in which the call ends if its recordings have finished before. ok reports whether any recording is
// available.
type OnRecorded func(ctx context.Context, tx db.Querier, org, callID string, ok bool) error

func (s *Service) startRecording(ctx context.Context, tx db.Querier, a Answer) error {
	r := a.Recording
	if err := s.insertRecording(ctx, tx, a.Org, a.ID, *r, a.At); err != nil {
		return err
	}
	const mark = `UPDATE calls SET recording_state = 'recording', recording_id = $3, consent = $4 WHERE org_id = $1 AND id = $2`
	_, err := tx.Exec(ctx, mark, a.Org, a.ID, r.ID, r.Consent)
	return err
}

// insertRecording inserts a recording that begins. It clears the call's recording_ready, which refers to the new
// recording from then on.
func (s *Service) insertRecording(ctx context.Context, tx db.Querier, org, callID string, r NewRecording, at time.Time) error {
	var until db.Time
	if r.Retention > 0 {
		until = db.At(at.Add(r.Retention))
	}
	const q = `INSERT INTO recordings (org_id, id, call_id, status, format, channels, sample_rate_hz, duration_seconds, size_bytes,
			blob, pauses, consent, started_by, legal_hold, retention_until, started_at, node)
		VALUES ($1, $2, $3, 'recording', 'wav', $10, $11, 0, 0, $4, '[]', $5, $6, FALSE, $7, $8, $9) ON CONFLICT DO NOTHING`
	_, err := tx.Exec(ctx, q, org, r.ID, callID, r.Name, r.Consent, r.Trigger, until, db.At(at), s.Node, cmp.Or(r.Channels, 2),
		cmp.Or(r.SampleRate, 8000))
	if err != nil {
		return fmt.Errorf("start recording: %w", err)
	}
	_, err = tx.Exec(ctx, `UPDATE calls SET recording_ready = FALSE WHERE org_id = $1 AND id = $2 AND recording_ready`, org, callID)
	return err
}

// stopRecordings ends the recordings of a call that are in progress.
func stopRecordings(ctx context.Context, tx db.Querier, org, callID string, at time.Time) error {
	const q = `UPDATE recordings SET status = 'processing', ended_at = $3
		WHERE org_id = $1 AND call_id = $2 AND status IN ('recording', 'paused')`
	_, err := tx.Exec(ctx, q, org, callID, db.At(at))
	return err
}

// Recorded stores the result of a recording. Only the first result of a recording has an effect. It waits for the
// commit, which shares a group commit with other writes (db.TxAsync). If a power failure loses the commit, Recover
// finds the file at the next start.
func (s *Service) Recorded(ctx context.Context, org, callID, id string, a Audio, then OnRecorded) error {
	written := s.DB.TxAsync(ctx, func(tx db.Querier) error {
		if err := s.lockCall(ctx, tx, org, callID); err != nil {
			return err
		}
		changed, err := s.finishRecording(ctx, tx, org, callID, id, a)
		if err != nil || !changed {
			return err
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

func (s *Service) finishRecording(ctx context.Context, tx db.Querier, org, callID, id string, a Audio) (bool, error) {
	status, fault := "available", recordingFault(a.Err)
	available := db.At(s.Now())
	if a.Err != nil {
		status, available = "failed", db.Time{}
	}
	const q = `UPDATE recordings SET status = $3, duration_seconds = $4, size_bytes = $5, sha256 = $6, available_at = $7, error = $8,
			ended_at = COALESCE(ended_at, $9), channels = COALESCE($10, channels), sample_rate_hz = COALESCE($11, sample_rate_hz)
		WHERE org_id = $1 AND id = $2 AND status IN ('recording', 'paused', 'processing') RETURNING pauses`
	var pauses db.JSON[[]Pause]
	err := tx.QueryRow(ctx, q, org, id, status, seconds(a.Duration), a.Size, db.Null(a.SHA256), available, faultText(fault),
		db.At(s.Now()), nullInt(a.Channels), nullInt(a.SampleRate)).Scan(&pauses)
	if db.IsNone(err) {
		return false, nil
	}
	if err != nil || a.Err != nil {
		return err == nil, err
	}
	if err := closePause(ctx, tx, org, id, pauses, a.Duration); err != nil {
		return true, err
	}
	const ready = `UPDATE calls SET recording_ready = TRUE WHERE org_id = $1 AND id = $2 AND recording_id = $3`
	_, err = tx.Exec(ctx, ready, org, callID, id)
	return true, err
}

// closePause ends a pause that lasted until the end of the recording.
func closePause(ctx context.Context, tx db.Querier, org, id string, pauses db.JSON[[]Pause], d time.Duration) error {
	n := len(pauses.V)
	if n == 0 || pauses.V[n-1].ToMS > 0 {
		return nil
	}
	pauses.V[n-1].ToMS = max(int(d.Milliseconds()), pauses.V[n-1].FromMS)
	_, err := tx.Exec(ctx, `UPDATE recordings SET pauses = $3 WHERE org_id = $1 AND id = $2`, org, id, pauses)
	return err
}

func recordingFault(err error) *event.Fault {
	if err == nil {
		return nil
	}
	return &event.Fault{Code: "recording_failed", Message: err.Error()}
}

func faultText(f *event.Fault) any {
	if f == nil {
		return nil
	}
	return db.AsJSON(f)
}

func (s *Service) publishRecording(ctx context.Context, tx db.Querier, org, callID, id string, a Audio) error {
	e := event.CallRecording{CallID: callID, RecordingID: id, Status: "available", DurationSeconds: seconds(a.Duration),
		Channels: a.Channels, Format: "wav", Error: recordingFault(a.Err)}
	if a.Err != nil {
		e.Status = "failed"
	} else {
		sandbox, err := isSandbox(ctx, tx, org, callID)
		if err != nil {
			return err
		}
		url := s.AudioURL(id, sandbox)
		e.RecordingURL = &url
	}
	return s.Outbox.Publish(ctx, tx, org, e)
}

func isSandbox(ctx context.Context, tx db.Querier, org, callID string) (sandbox bool, err error) {
	err = tx.QueryRow(ctx, `SELECT sandbox FROM calls WHERE org_id = $1 AND id = $2`, org, callID).Scan(&sandbox)
	return sandbox, err
}

// AudioURL returns the URL of the audio, which needs a credential.
func (s *Service) AudioURL(id string, sandbox bool) string {
	return s.prefix(sandbox) + "/recordings/" + id + "/audio"
}

func (s *Service) prefix(sandbox bool) string {
	if sandbox {
		return s.BaseURL + "/sandbox/v1"
	}
	return s.BaseURL + "/api/v1"
}

// setRecordingURL replaces the id of an available recording by its URL.
func (s *Service) setRecordingURL(c *Call) {
	if c.RecordingURL != nil {
		url := s.AudioURL(*c.RecordingURL, c.Sandbox)
		c.RecordingURL = &url
	}
}

const recordingColumns = `id, call_id, status, format, channels, sample_rate_hz, duration_seconds, size_bytes, blob, pauses, consent,
	started_by, sha256, legal_hold, retention_until, started_at, ended_at, available_at, error`

func scanRecording(r row) (Recording, error) {
	var x Recording
	var sha db.Null
	var pauses db.JSON[[]Pause]
	var until, ended, available db.Time
	var wrong db.JSON[*event.Fault]
	err := r.Scan(&x.ID, &x.CallID, &x.Status, &x.Format, &x.Channels, &x.SampleRateHz, &x.DurationSeconds, &x.SizeBytes, &x.blob,
		&pauses, &x.Consent, &x.Trigger, &sha, &x.LegalHold, &until, &x.StartedAt, &ended, &available, &wrong)
	x.SHA256, x.RetentionUntil, x.EndedAt, x.AvailableAt, x.Error = sha.Ptr(), until.Ptr(), ended.Ptr(), available.Ptr(), wrong.V
	x.Pauses = pauses.V
	if x.Pauses == nil {
		x.Pauses = []Pause{}
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
	r, err := recordingOf(ctx, s.DB.Read(ctx), org, callID)
	if err != nil {
		return nil, 0, err
	}
	if r.Status != "available" {
		return nil, 0, db.ErrNone
	}
	return s.Files.Open(ctx, r.blob)
}
