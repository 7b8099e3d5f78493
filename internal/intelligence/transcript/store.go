package transcript

import (
	"cmp"
	"context"
	"fmt"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
)

const transcriptColumns = `id, call_id, status, language, engine, duration_seconds, word_count, text, segments, skipped_reason,
	error, created_at, completed_at, (SELECT v.id FROM voicemails v WHERE v.org_id = transcripts.org_id AND v.call_id = transcripts.call_id
		AND v.transcript_id = transcripts.id) AS voicemail_id, redactions`

func scanTranscript(row interface{ Scan(...any) error }) (Transcript, error) {
	var t Transcript
	var engine db.JSON[Engine]
	var segments db.JSON[[]Segment]
	var reason db.Null
	var fault db.JSON[*event.Fault]
	var completed db.Time
	var removed db.JSON[[]Redaction]
	err := row.Scan(&t.ID, &t.CallID, &t.Status, &t.Language, &engine, &t.DurationSeconds, &t.WordCount, &t.Text, &segments,
		&reason, &fault, &t.CreatedAt, &completed, &t.VoicemailID, &removed)
	t.Engine, t.Segments, t.SkippedReason, t.Error = engine.V, segments.V, reason.Ptr(), fault.V
	t.CompletedAt, t.Redactions = completed.Ptr(), removed.V
	if t.Redactions == nil {
		t.Redactions = []Redaction{}
	}
	return t, err
}

// transcriptOfCall returns the transcript of a call.
func transcriptOfCall(ctx context.Context, q db.Querier, org, callID string) (Transcript, error) {
	const text = `SELECT ` + transcriptColumns + ` FROM transcripts WHERE org_id = $1 AND call_id = $2`
	return scanTranscript(q.QueryRow(ctx, text, org, callID))
}

// transcriptByID returns a transcript.
func transcriptByID(ctx context.Context, q db.Querier, org, id string) (Transcript, error) {
	const text = `SELECT ` + transcriptColumns + ` FROM transcripts WHERE org_id = $1 AND id = $2`
	return scanTranscript(q.QueryRow(ctx, text, org, id))
}

// insertTranscript inserts a transcript and its pending summary. If the call has them it changes nothing.
func insertTranscript(ctx context.Context, tx db.Querier, org string, t Transcript) error {
	const q = `INSERT INTO transcripts (org_id, id, call_id, status, language, engine, duration_seconds, word_count, text, segments,
			created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (org_id, call_id) DO NOTHING`
	_, err := tx.Exec(ctx, q, org, t.ID, t.CallID, string(t.Status), t.Language, db.AsJSON(t.Engine), t.DurationSeconds, t.WordCount,
		t.Text, db.AsJSON(t.Segments), t.CreatedAt)
	if err != nil {
		return err
	}
	const note = `INSERT INTO summaries (org_id, call_id, status, note, language, embedding, embedding_model, embedding_size, created_at)
		VALUES ($1, $2, 'pending', '{}', $3, 'pending', '', 0, $4) ON CONFLICT (org_id, call_id) DO NOTHING`
	_, err = tx.Exec(ctx, note, org, t.CallID, t.Language, t.CreatedAt)
	return err
}

// markProcessing sets a queued transcript to processing.
func markProcessing(ctx context.Context, tx db.Querier, org, callID string) error {
	const q = `UPDATE transcripts SET status = 'processing' WHERE org_id = $1 AND call_id = $2 AND status = 'queued'`
	_, err := tx.Exec(ctx, q, org, callID)
	return err
}

// saveFinal stores a transcript's final state. A transcript in a final state is not changed.
func saveFinal(ctx context.Context, tx db.Querier, org string, t Transcript) error {
	const q = `UPDATE transcripts SET status = $3, engine = $4, duration_seconds = $5, word_count = $6, text = $7, segments = $8,
			skipped_reason = $9, error = $10, completed_at = $11, redactions = $12
		WHERE org_id = $1 AND call_id = $2 AND status NOT IN ('completed', 'failed', 'skipped')`
	var reason db.Null
	if t.SkippedReason != nil {
		reason = db.Null(*t.SkippedReason)
	}
	_, err := tx.Exec(ctx, q, org, t.CallID, string(t.Status), db.AsJSON(t.Engine), t.DurationSeconds, t.WordCount, t.Text,
		db.AsJSON(t.Segments), reason, db.AsJSON(t.Error), *t.CompletedAt, db.AsJSON(t.Redactions))
	return err
}

// summaryOf returns the note of a call; announced reports whether call.transcription was published.
func summaryOf(ctx context.Context, q db.Querier, org, callID string) (s Summary, announced bool, err error) {
	const text = `SELECT status, note, language, error, embedding, embedding_model, embedding_size, created_at, announced_at
		FROM summaries WHERE org_id = $1 AND call_id = $2`
	var n db.JSON[Note]
	var fault db.JSON[*event.Fault]
	var told db.Time
	s.CallID = callID
	err = q.QueryRow(ctx, text, org, callID).Scan(&s.Status, &n, &s.Language, &fault, &s.Embedding.Status, &s.Embedding.Model,
		&s.Embedding.Dimensions, &s.CreatedAt, &told)
	s.Error = fault.V
	s.setNote(n.V)
	return s, !told.IsZero(), err
}

// setNote sets the contents of a note.
func (s *Summary) setNote(n Note) {
	s.AISummary, s.Topics, s.ActionItems, s.Evidence, s.Engine = n.Summary, n.Topics, n.ActionItems, n.Evidence, n.Engine
	s.Flags, s.Entities, s.Stats = n.Flags, n.Entities, n.Stats
	if n.Reason != "" {
		s.Reason = &n.Reason
	}
	if n.Outcome != "" {
		outcome := string(n.Outcome)
		s.Outcome = &outcome
	}
	if n.Sentiment.Overall != "" {
		n.Sentiment.CallerTrend = cmp.Or(n.Sentiment.CallerTrend, Unknown)
		n.Sentiment.AgentTrend = cmp.Or(n.Sentiment.AgentTrend, Unknown)
		s.Sentiment = &n.Sentiment
	}
	if s.Topics == nil {
		s.Topics = []string{}
	}
	if s.ActionItems == nil {
		s.ActionItems = []ActionItem{}
	}
	if s.Evidence == nil {
		s.Evidence = []int{}
	}
	if s.Flags == nil {
		s.Flags = []Flag{}
	}
	if s.Entities == nil {
		s.Entities = []Entity{}
	}
}

// finishSummary stores a summary's final state and the time of its publication; changed is false if it was published
// already.
func finishSummary(ctx context.Context, tx db.Querier, org, callID string, status Status, n Note, fault *event.Fault,
	at db.Time) (changed bool, err error) {
	const q = `UPDATE summaries SET status = $3, note = $4, error = $5, announced_at = $6
		WHERE org_id = $1 AND call_id = $2 AND announced_at IS NULL`
	r, err := tx.Exec(ctx, q, org, callID, string(status), db.AsJSON(n), db.AsJSON(fault), at)
	if err != nil {
		return false, err
	}
	rows, err := r.RowsAffected()
	return rows > 0, err
}

// setEmbedding stores the state of a call in the call memory; known is false for a call that was deleted meanwhile.
func setEmbedding(ctx context.Context, tx db.Querier, org, callID string, e Embedding) (known bool, err error) {
	const q = `UPDATE summaries SET embedding = $3, embedding_model = $4, embedding_size = $5 WHERE org_id = $1 AND call_id = $2`
	r, err := tx.Exec(ctx, q, org, callID, e.Status, e.Model, e.Dimensions)
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	return n > 0, err
}

// listTranscripts returns transcripts without their segments.
func listTranscripts(ctx context.Context, q db.Querier, f *db.Filter) ([]Transcript, error) {
	text, args := f.SQL()
	rows, err := q.Query(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []Transcript
	for rows.Next() {
		t, err := scanTranscript(rows)
		if err != nil {
			return nil, err
		}
		t.Segments = nil
		out = append(out, t)
	}
	return out, rows.Err()
}

// deletedAtOnce is the number of transcripts that one transaction of DeleteBefore deletes.
const deletedAtOnce = 100

// DeleteBefore deletes some transcripts of an organisation made before a time, with their notes and their words in events, and returns how
// many. Call it until it returns 0. Calls keep their short summary.
func (s *Service) DeleteBefore(ctx context.Context, org string, before db.Time) (int64, error) {
	var n int64
	err := s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		calls, err := callsBefore(ctx, tx, org, before)
		if err != nil {
			return err
		}
		for _, callID := range calls {
			if err := s.deleteTexts(ctx, tx, org, callID); err != nil {
				return err
			}
			if err := s.removeFromEvents(ctx, tx, org, callID); err != nil {
				return err
			}
		}
		n = int64(len(calls))
		return nil
	})
	return n, err
}

// callsBefore returns calls with a transcript made before a time, the oldest first.
func callsBefore(ctx context.Context, q db.Querier, org string, before db.Time) (calls []string, err error) {
	const text = `SELECT call_id FROM transcripts WHERE org_id = $1 AND created_at < $2 ORDER BY created_at LIMIT $3`
	return db.Strings(ctx, q, "find old transcripts", text, org, before, deletedAtOnce)
}

// deleteTexts deletes the transcript and the note of a call.
func (s *Service) deleteTexts(ctx context.Context, tx db.Querier, org, callID string) error {
	for _, q := range []string{
		`DELETE FROM summaries WHERE org_id = $1 AND call_id = $2`,
		`DELETE FROM transcripts WHERE org_id = $1 AND call_id = $2`,
	} {
		if _, err := tx.Exec(ctx, q, org, callID); err != nil {
			return fmt.Errorf("delete the words of %s: %w", callID, err)
		}
	}
	return nil
}
