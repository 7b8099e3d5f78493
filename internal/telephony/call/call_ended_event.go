package call

import (
	"context"
	"errors"
	"fmt"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
	"soniq/internal/platform/observe"
)

// JobQueue names the job queue of calls.
const JobQueue = "call"

const enrichedTimeoutKind = "call.announce"

func enrichedTimeoutKey(callID string) string { return enrichedTimeoutKind + " " + callID }

// callJobArgs holds the arguments of jobs about a call.
type callJobArgs struct {
	CallID string `json:"call_id"`
}

// Handle registers the job handlers of calls.
func (s *Service) Handle(r *job.Runner) {
	r.Handle(enrichedTimeoutKind, s.publishEndedAfterTimeout)
}

// publishEndedAfterTimeout publishes the enriched call.ended with the data present enrichedWait (30 s) after the end.
func (s *Service) publishEndedAfterTimeout(ctx context.Context, j job.Job) error {
	var ref callJobArgs
	if err := j.Bind(&ref); err != nil {
		return errors.Join(err, job.ErrDead)
	}
	return s.cfg.DB.Tx(ctx, func(tx db.Querier) error { return s.PublishEnriched(ctx, tx, j.Org, ref.CallID, false) })
}

// PublishEnriched publishes call.ended to the subscribers that wait for recording and summary (event.Enriched). It
// publishes once per call; further calls do nothing. complete reports that recording, transcript and summary have all
// finished, successfully or not.
func (s *Service) PublishEnriched(ctx context.Context, tx db.Querier, org, id string, complete bool) error {
	row, err := getCall(ctx, tx, org, id)
	if err != nil {
		return fmt.Errorf("announce call %s: %w", id, err)
	}
	if row.internal.EndPublished || row.EndedAt == nil {
		return nil
	}
	return s.publishEndedOnce(ctx, tx, org, row, event.AudienceEnriched, complete)
}

func (s *Service) publishEndedOnce(ctx context.Context, tx db.Querier, org string, row Call, a event.Audience, complete bool) error {
	const q = `UPDATE calls SET announced_at = $3 WHERE org_id = $1 AND id = $2 AND announced_at IS NULL` // of two concurrent transactions, one updates the row
	r, err := tx.Exec(ctx, q, org, row.ID, db.At(s.Now()))
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || n == 0 {
		return err
	}
	if err := s.cfg.Jobs.Withdraw(ctx, tx, org, enrichedTimeoutKey(row.ID)); err != nil { // the job would have nothing left to publish
		return err
	}
	if err := s.notifyEnriched(ctx, tx, org, row.ID); err != nil {
		return err
	}
	return s.publishEnded(ctx, tx, org, row, a, complete)
}

// notifyEnriched calls the enrichment observers in the transaction.
func (s *Service) notifyEnriched(ctx context.Context, tx db.Querier, org, id string) error {
	return observe.Each(s.observers.enrichments, func(o EnrichmentObserver) error { return o.CallEnriched(ctx, tx, org, id) })
}

func (s *Service) publishEnded(ctx context.Context, tx db.Querier, org string, c Call, a event.Audience, complete bool) error {
	s.setRecordingURL(&c)
	e := event.CallEnded{
		CallID: c.ID, FromNumber: c.FromNumber, TalkDurationSeconds: c.TalkDurationSeconds, RecordingURL: c.RecordingURL,
		AISummary: c.AISummary, ToNumber: c.ToNumber, Direction: string(c.Direction), Status: string(c.Status),
		StartedAt: c.StartedAt, AnsweredAt: c.AnsweredAt, EndedAt: *c.EndedAt, AgentID: c.AgentID, QueueID: c.QueueID,
		HoldSeconds: c.HoldSeconds, Tags: c.Tags, Quality: c.Quality, Enriched: complete, Contact: c.Contact,
	}
	if c.EndReason != nil {
		e.EndReason = *c.EndReason
	}
	if c.HangupBy != nil {
		e.HangupBy = *c.HangupBy
	}
	return s.cfg.Outbox.PublishTo(ctx, tx, org, a, e)
}

// SetSummary stores transcript id, summary and sentiment in the call's row, which lists and events read. Empty values
// leave the columns unchanged.
func (s *Service) SetSummary(ctx context.Context, tx db.Querier, org, id, transcriptID, summary, sentiment string) error {
	const q = `UPDATE calls SET transcript_id = COALESCE($3, transcript_id), ai_summary = COALESCE($4, ai_summary),
		sentiment = COALESCE($5, sentiment) WHERE org_id = $1 AND id = $2`
	_, err := tx.Exec(ctx, q, org, id, db.Null(transcriptID), db.Null(summary), db.Null(sentiment))
	if err != nil {
		return fmt.Errorf("set summary of call %s: %w", id, err)
	}
	return s.notifyEnriched(ctx, tx, org, id)
}

// ClearSummary resets the columns that SetSummary writes.
func (s *Service) ClearSummary(ctx context.Context, tx db.Querier, org, id string) error {
	const q = `UPDATE calls SET transcript_id = NULL, ai_summary = NULL, sentiment = NULL WHERE org_id = $1 AND id = $2`
	if _, err := tx.Exec(ctx, q, org, id); err != nil {
		return fmt.Errorf("clear summary of call %s: %w", id, err)
	}
	return nil
}
