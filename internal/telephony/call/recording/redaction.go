package recording

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/redact"
	"soniq/internal/protocol/media/wav"
	"soniq/internal/telephony/call"
)

// Removal of numbers from recordings. A recording stays in processing until the transcript of its call tells where the numbers are.

// Redaction is a part of a recording that was replaced by silence.
type Redaction struct {
	Kind    redact.Kind `json:"kind" enum:"card,expiry,cvv,account,health,social,pin"`
	StartMS int         `json:"start_ms" doc:"Start, milliseconds from the start of the recording"`
	EndMS   int         `json:"end_ms" doc:"End, milliseconds from the start of the recording"`
}

// States of the removal.
const (
	redactionPending  = "pending"
	redactionDone     = "done"
	redactionWithheld = "withheld" // the numbers could not be found; the recording has failed
)

// redactionMarginMS is silenced before and after each number, because the times of words are not exact.
const redactionMarginMS = 200

// failure returns why a recording failed, or "".
func (r Recording) failure() string {
	if r.Error == nil {
		return ""
	}
	return r.Error.Message
}

// IsLocal reports whether this server has the file of a recording.
func (s *Service) IsLocal(p Part) bool { return p.Node == s.cfg.Node }

// Redact replaces parts of a recording by silence, and makes it available if it waited for that. It can be repeated.
func (s *Service) Redact(ctx context.Context, org, callID string, p Part, parts []Redaction) error {
	r, err := getRecording(ctx, s.cfg.DB.Read(ctx), org, p.ID)
	if err != nil {
		return fmt.Errorf("read recording %s: %w", p.ID, err)
	}
	if len(parts) == 0 && !p.Pending() && p.Redaction != redactionWithheld || r.Status == "deleted" {
		return nil
	}
	all := mergeRedactions(r.Redactions, parts)
	sum, size, err := wav.Silence(ctx, s.cfg.Files, p.Name, spansOf(all))
	if err != nil {
		return fmt.Errorf("remove numbers from recording %s: %w", p.ID, err)
	}
	return s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		if err := s.cfg.Calls.Lock(ctx, tx, org, callID); err != nil {
			return err
		}
		const q = `UPDATE recordings SET redactions = $3, redaction = 'done', sha256 = $4, size_bytes = $5, status = 'available',
				available_at = COALESCE(available_at, $6), error = CASE WHEN redaction = 'withheld' THEN NULL ELSE error END
			WHERE org_id = $1 AND id = $2 AND (status = 'available' OR redaction IN ('pending', 'withheld') AND status <> 'deleted')`
		var n int64
		err := db.Affected(ctx, tx, &n, q, org, p.ID, db.AsJSON(all), sum, size, db.At(s.cfg.Clock.Now()))
		if err != nil || n == 0 || r.Status == "available" {
			return err
		}
		return s.release(ctx, tx, org, callID, p.ID)
	})
}

// Withhold marks a recording that waits for the removal of numbers as failed, because they could not be found.
func (s *Service) Withhold(ctx context.Context, org, callID string, p Part, reason string) error {
	fault := &event.Fault{Code: "redaction_failed", Message: "card and account numbers could not be removed from the recording (" + reason +
		"): make its transcript again with POST /transcripts/{id}/retry once that is mended"}
	return s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		if err := s.cfg.Calls.Lock(ctx, tx, org, callID); err != nil {
			return err
		}
		const q = `UPDATE recordings SET redaction = 'withheld', status = 'failed', error = $3
			WHERE org_id = $1 AND id = $2 AND redaction = 'pending' AND status = 'processing'`
		var n int64
		err := db.Affected(ctx, tx, &n, q, org, p.ID, db.AsJSON(fault))
		if err != nil || n == 0 {
			return err
		}
		return s.cfg.Outbox.Publish(ctx, tx, org, event.CallRecording{CallID: callID, RecordingID: p.ID, Status: "failed", Format: "wav",
			Error: fault})
	})
}

// release announces a recording that has become available.
func (s *Service) release(ctx context.Context, tx db.Querier, org, callID, id string) error {
	r, err := getRecording(ctx, tx, org, id)
	if err != nil {
		return fmt.Errorf("read recording %s: %w", id, err)
	}
	if err := s.cfg.Calls.SetRecordingReady(ctx, tx, org, callID, id, true); err != nil {
		return err
	}
	e := event.CallRecording{CallID: callID, RecordingID: id, Status: r.Status, DurationSeconds: r.DurationSeconds, Channels: r.Channels,
		Format: r.Format, Error: r.Error, Truncated: r.Truncated, MissingSeconds: r.MissingSeconds}
	sandbox, err := call.IsSandbox(ctx, tx, org, callID)
	if err != nil {
		return err
	}
	url := s.cfg.Links.Audio(id, sandbox)
	e.RecordingURL = &url
	return s.cfg.Outbox.Publish(ctx, tx, org, e)
}

// mergeRedactions returns the parts of both lists, in order and without duplicates.
func mergeRedactions(a, b []Redaction) []Redaction {
	all := slices.Concat(a, b)
	slices.SortFunc(all, func(x, y Redaction) int {
		return cmp.Or(x.StartMS-y.StartMS, x.EndMS-y.EndMS, cmp.Compare(x.Kind, y.Kind))
	})
	return slices.Compact(all)
}

// spansOf returns the parts of a file that are silenced for redactions.
func spansOf(parts []Redaction) []wav.Span {
	all := make([]wav.Span, len(parts))
	for i, r := range parts {
		all[i] = SilencedSpan(r.StartMS, r.EndMS)
	}
	return all
}

// SilencedSpan returns the part of a file that is silenced for words at a time.
func SilencedSpan(startMS, endMS int) wav.Span {
	return wav.Span{StartMS: startMS - redactionMarginMS, EndMS: endMS + redactionMarginMS}
}
