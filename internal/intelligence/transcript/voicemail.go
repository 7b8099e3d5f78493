package transcript

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
	"soniq/internal/telephony/call"
)

// Voicemails gives access to voicemail messages. They are transcribed by the same engines as calls, after the end of
// the call.
type Voicemails interface {
	// OpenAudio opens the audio of a message; it returns nil if the message is already transcribed. For a deleted
	// message it returns db.ErrNone.
	OpenAudio(ctx context.Context, org, id string) (callID string, sound io.ReadSeekCloser, size int64, err error)
	// Redact replaces parts of the audio of a message by silence. It can be repeated.
	Redact(ctx context.Context, org, id string, parts []Redaction) error
	// SaveTranscript stores the transcript, note and urgency of a message.
	SaveTranscript(ctx context.Context, tx db.Querier, org, id string, t Transcript, n Note, urgency string) error
}

const voicemailJobKind = "voicemail.process"

// voicemailRef is the argument of jobs about a message.
type voicemailRef struct {
	VoicemailID string `json:"voicemail_id"`
}

// OnVoicemail queues the transcription of a message. Call it in the transaction that inserts the message.
func (s *Service) OnVoicemail(ctx context.Context, tx db.Querier, org, id string) error {
	return s.cfg.Jobs.Enqueue(ctx, tx, job.Spec{Org: org, Queue: Queue, Lane: org, Kind: voicemailJobKind, Args: voicemailRef{id},
		MaxAttempts: maxAttempts, UniqueKey: voicemailJobKind + " " + id})
}

// callPollInterval is the delay before checking again whether the call of a message has ended.
const callPollInterval = 3 * time.Second

// processMessage transcribes a message, writes its note and rates its urgency. If the call was not recorded
// otherwise, transcript and note of the message become those of the call.
func (s *Service) processMessage(ctx context.Context, j job.Job) error {
	var ref voicemailRef
	if err := j.Bind(&ref); err != nil {
		return errors.Join(err, job.ErrDead)
	}
	callID, sound, size, err := s.cfg.Voicemails.OpenAudio(ctx, j.Org, ref.VoicemailID)
	if db.IsNone(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open message %s: %w", ref.VoicemailID, err)
	}
	if sound != nil {
		defer sound.Close()
	}
	whole, err := s.cfg.Calls.Find(ctx, j.Org, callID)
	if err != nil {
		return fmt.Errorf("read call %s: %w", callID, err)
	}
	if whole.EndedAt == nil {
		return &job.Retry{After: callPollInterval, NotCounted: true, Cause: errors.New("the call goes on")}
	}
	alone := whole.Recording.RecordingID == nil
	if sound != nil {
		if err := s.transcribeMessage(ctx, j, ref.VoicemailID, whole, sound, size, alone); err != nil {
			return err
		}
	}
	if !alone {
		return nil
	}
	return s.finishMessage(ctx, j, callID)
}

// transcribeMessage recognises a message and stores transcript, note and urgency.
func (s *Service) transcribeMessage(ctx context.Context, j job.Job, id string, c call.Call, sound io.ReadSeeker, size int64,
	alone bool) error {
	now := db.At(s.cfg.Clock.Now())
	t := Transcript{ID: db.NewID("trn"), CallID: c.ID, VoicemailID: &id, Status: Processing, CreatedAt: now,
		Language: s.language(ctx, s.cfg.DB.Read(ctx), j.Org, c.ID)}
	policy, err := s.policy(ctx, j.Org, t.Language)
	if err != nil {
		return err
	}
	segments, err := s.readMessage(ctx, sound, size, t.Language, s.vocabulary(j.Org, c.ID))
	segments, t.Redactions = redactSegments(policy, segments)
	if err := s.setOutcome(&t, segments, err, j.Last()); err != nil {
		return fmt.Errorf("recognise message %s: %w", id, err)
	}
	if policy.Audio && len(t.Redactions) > 0 {
		if err := s.cfg.Voicemails.Redact(ctx, j.Org, id, t.Redactions); err != nil {
			return err
		}
	}
	t.CompletedAt = &now
	n, _, err := s.writeNote(ctx, j, callFacts{CDR: call.CDR{CallID: c.ID, Direction: call.Inbound, StartedAt: c.StartedAt}}, t)
	if err != nil && !j.Last() {
		return fmt.Errorf("write note of message %s: %w", id, err)
	}
	return s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		if !alone {
			t.ID = ""
		} else if err := s.saveMessageTranscript(ctx, tx, j.Org, t); err != nil {
			return err
		}
		return s.cfg.Voicemails.SaveTranscript(ctx, tx, j.Org, id, t, n, urgency(t.Text))
	})
}

// saveMessageTranscript stores the transcript of a message as that of its call.
func (s *Service) saveMessageTranscript(ctx context.Context, tx db.Querier, org string, t Transcript) error {
	if err := insertTranscript(ctx, tx, org, t); err != nil {
		return err
	}
	if err := saveFinal(ctx, tx, org, t); err != nil {
		return err
	}
	return s.cfg.Calls.SetSummary(ctx, tx, org, t.CallID, t.ID, "", "")
}

func (s *Service) readMessage(ctx context.Context, sound io.ReadSeeker, size int64, language string, v Vocabulary) ([]Segment, error) {
	if s.cfg.Pool == nil {
		return nil, ErrDisabled
	}
	if err := CheckLanguage(s.cfg.Recognizer, language); err != nil {
		return nil, err
	}
	segments, err := s.cfg.Pool.TranscribeFile(ctx, &seekReader{r: sound}, size, Format{Encoding: PCMU, Rate: 8000, Channels: 1}, language,
		v)
	for i := range segments {
		segments[i].Speaker = Caller // a message has one speaker
	}
	return segments, err
}

// finishMessage publishes and indexes a call's transcript and note, which are those of its message.
func (s *Service) finishMessage(ctx context.Context, j job.Job, callID string) error {
	t, err := transcriptOfCall(ctx, s.cfg.DB.Read(ctx), j.Org, callID)
	if db.IsNone(err) { // it was deleted meanwhile
		return nil
	}
	if err != nil {
		return err
	}
	facts, err := s.loadCallFacts(ctx, j.Org, callID)
	if err != nil {
		return err
	}
	n, err := s.summarise(ctx, j, facts, t)
	if err != nil {
		return err
	}
	return s.indexCall(ctx, j, facts, t, n)
}

// DeleteMessage deletes the transcript of a deleted message, in the caller's transaction.
func (s *Service) DeleteMessage(ctx context.Context, tx db.Querier, org, transcript string) error {
	t, err := transcriptByID(ctx, tx, org, transcript)
	if db.IsNone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.deleteWords(ctx, tx, org, t)
}
