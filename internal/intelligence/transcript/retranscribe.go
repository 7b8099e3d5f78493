package transcript

import (
	"context"
	"fmt"
	"slices"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op"
	"soniq/internal/platform/personal"
	"soniq/internal/telephony/call/recording"
)

// Retranscription and deletion of the transcript of a call.

// RetryIn requests a new transcript of the same recordings.
type RetryIn struct {
	ID   string `path:"id" maxLength:"40" doc:"Transcript"`
	Body *struct {
		Engine   string `json:"engine,omitempty" maxLength:"60" doc:"Name of the engine; the one this server has unless given"`
		Language string `json:"language,omitempty" maxLength:"20" doc:"Language that is spoken, as in en or en-GB; as before unless given" pattern:"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$"`
	}
}

// retry queues a job that recognises the recordings of a call again, writes a new note, indexes both and publishes
// call.transcription once more. Until then the transcript shows the previous result, and it keeps it if the new
// attempt recognises nothing.
func (s *Service) retry(ctx context.Context, in *RetryIn) (*op.Out[Transcript], error) {
	org := access.Org(ctx)
	if err := s.checkEngine(in); err != nil {
		return nil, err
	}
	var t Transcript
	err := s.cfg.DB.Tx(ctx, func(tx db.Querier) (err error) {
		if t, err = s.finalTranscript(ctx, tx, org, in.ID); err != nil {
			return err
		}
		if err = s.checkAudio(ctx, org, t); err != nil {
			return err
		}
		if in.Body != nil && in.Body.Language != "" {
			t.Language = in.Body.Language
		}
		t.Status, t.SkippedReason, t.Error = Queued, nil, nil
		if err = resetForRetry(ctx, tx, org, t); err != nil {
			return fmt.Errorf("reopen transcript %s: %w", t.ID, err)
		}
		// No unique key: the job that made the transcript may still be finishing. Two concurrent retries are refused
		// above.
		return s.cfg.Jobs.Enqueue(ctx, tx, job.Spec{Org: org, Queue: Queue, Lane: org, Kind: callJobKind, Args: callRef{t.CallID},
			MaxAttempts: maxAttempts})
	})
	if err != nil {
		return nil, err
	}
	return op.OK(t.withWords(false))
}

// checkEngine returns an error for an engine that this server does not have, and for a language that its engine does
// not know.
func (s *Service) checkEngine(in *RetryIn) error {
	if s.cfg.Recognizer == nil || in.Body == nil {
		return nil
	}
	var wrong []op.Violation
	if name := s.cfg.Recognizer.Engine().Name; in.Body.Engine != "" && in.Body.Engine != name {
		wrong = append(wrong, op.Field("engine", "invalid_value", "this server has the engine "+name))
	}
	if err := CheckLanguage(s.cfg.Recognizer, in.Body.Language); in.Body.Language != "" && err != nil {
		wrong = append(wrong, op.Field("language", SkippedLanguage, err.Error()))
	}
	if len(wrong) == 0 {
		return nil
	}
	return op.Invalid(wrong...)
}

// finalTranscript returns a transcript in a final state; any other state is an error.
func (s *Service) finalTranscript(ctx context.Context, tx db.Querier, org, id string) (Transcript, error) {
	t, err := transcriptByID(ctx, tx, org, id)
	switch {
	case db.IsNone(err):
		return t, op.NotFound("transcript")
	case err != nil:
		return t, fmt.Errorf("read transcript %s: %w", id, err)
	case !t.Status.final():
		return t, op.State("the transcript is being made", string(t.Status))
	}
	return t, nil
}

// checkAudio returns an error if no audio or no recogniser is available.
func (s *Service) checkAudio(ctx context.Context, org string, t Transcript) error {
	if s.cfg.Pool == nil {
		return op.State("transcription is switched off on this server: start it with --transcriber", string(t.Status))
	}
	parts, err := s.cfg.Recordings.Parts(ctx, org, t.CallID)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(parts, func(p recording.Part) bool { return p.Available }) {
		return op.State("no recording of the call is left", string(t.Status), "delete")
	}
	return nil
}

// resetForRetry sets a transcript and its note back to their initial states. Their contents stay until there is a new
// result.
func resetForRetry(ctx context.Context, tx db.Querier, org string, t Transcript) error {
	const words = `UPDATE transcripts SET status = 'queued', language = $3, skipped_reason = NULL, error = NULL WHERE org_id = $1 AND id = $2`
	if _, err := tx.Exec(ctx, words, org, t.ID, t.Language); err != nil {
		return err
	}
	const note = `UPDATE summaries SET status = 'pending', language = $3, error = NULL, embedding = 'pending', announced_at = NULL
		WHERE org_id = $1 AND call_id = $2`
	_, err := tx.Exec(ctx, note, org, t.CallID, t.Language)
	return err
}

// keepPrevious restores the previous result, with the error of the new attempt, if the new attempt recognised
// nothing.
func (t *Transcript) keepPrevious(before Transcript) {
	if before.CompletedAt == nil || len(before.Segments) == 0 || t.Status == Completed {
		return
	}
	f := t.Error
	if f == nil {
		f = &event.Fault{Code: *t.SkippedReason, Message: "trying again understood nothing"}
	}
	id, language, removed := t.ID, t.Language, t.Redactions
	*t = before
	t.ID, t.Language, t.Status, t.Error, t.SkippedReason, t.Redactions = id, language, Completed, f, nil, removed
}

// DeleteIn selects the transcript to delete.
type DeleteIn struct {
	ID string `path:"id" maxLength:"40" doc:"Transcript"`
}

// remove deletes a transcript, its note and its words in the call memory. The call stays in the history of its
// number.
func (s *Service) remove(ctx context.Context, in *DeleteIn) error {
	org := access.Org(ctx)
	return s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		t, err := s.finalTranscript(ctx, tx, org, in.ID)
		if err != nil {
			return err
		}
		if t.VoicemailID != nil && s.cfg.Voicemails != nil {
			gone := Transcript{Status: Skipped}
			if err := s.cfg.Voicemails.SaveTranscript(ctx, tx, org, *t.VoicemailID, gone, Note{}, ""); err != nil {
				return err
			}
		}
		return s.deleteWords(ctx, tx, org, t)
	})
}

// deleteWords deletes a transcript, and indexes its call without words.
func (s *Service) deleteWords(ctx context.Context, tx db.Querier, org string, t Transcript) error {
	if err := s.DeleteTranscript(ctx, tx, org, t.CallID); err != nil || s.cfg.Memory == nil {
		return err
	}
	c, err := s.loadCallFacts(ctx, org, t.CallID)
	if err != nil {
		return err
	}
	lesson, err := s.cfg.Memory.Prepare(ctx, memoryCall(c, Transcript{}, Note{}))
	if err != nil {
		return err
	}
	return s.cfg.Memory.IndexCall(ctx, tx, org, lesson)
}

// DeleteTranscript deletes the transcript and the note of a call, and their copies in the call, in the caller's
// transaction.
func (s *Service) DeleteTranscript(ctx context.Context, tx db.Querier, org, callID string) error {
	if err := s.deleteTexts(ctx, tx, org, callID); err != nil {
		return err
	}
	if err := s.cfg.Utterances.DeleteUtterances(ctx, tx, org, callID); err != nil {
		return err
	}
	s.dropLive(org, callID)
	if err := s.removeFromEvents(ctx, tx, org, callID); err != nil {
		return err
	}
	return s.cfg.Calls.ClearSummary(ctx, tx, org, callID)
}

// removeFromEvents removes what was said in a call from its events and their deliveries to webhooks.
func (s *Service) removeFromEvents(ctx context.Context, tx db.Querier, org, callID string) error {
	if err := s.cfg.Outbox.RemoveContent(ctx, tx, org, callID, event.Words); err != nil {
		return err
	}
	return s.cfg.Deliveries.RemoveContent(ctx, tx, org, callID, event.Words)
}

// ExportCall exports the transcript and the note of a call.
func (s *Service) ExportCall(ctx context.Context, q db.Querier, org, callID string, w personal.Writer) error {
	const words = `SELECT * FROM transcripts WHERE org_id = $1 AND call_id = $2`
	if err := personal.Rows(ctx, q, w, "transcripts", words, org, callID); err != nil {
		return err
	}
	return personal.Rows(ctx, q, w, "summaries", `SELECT * FROM summaries WHERE org_id = $1 AND call_id = $2`, org, callID)
}
