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
type Messages interface {
	// OpenAudio opens the audio of a message; it returns nil if the message is already transcribed. For a deleted
	// message it returns db.ErrNone.
	Sound(ctx context.Context, org, id string) (callID string, sound io.ReadSeekCloser, size int64, err error)
	// SaveTranscript stores the transcript, note and urgency of a message.
	Understood(ctx context.Context, tx db.Querier, org, id string, t Transcript, n Note, urgency string) error
}

const messageKind = "voicemail.process"

// voicemailRef is the argument of jobs about a message.
type messageRef struct {
	VoicemailID string `json:"voicemail_id"`
}

// OnVoicemail queues the transcription of a message. Call it in the transaction that inserts the message.
func (s *Service) Left(ctx context.Context, tx db.Querier, org, id string) error {
	return s.Jobs.Enqueue(ctx, tx, job.Spec{Org: org, Queue: Queue, Lane: org, Kind: messageKind, Args: messageRef{id},
		MaxAttempts: attempts, UniqueKey: messageKind + " " + id})
}

// callPollInterval is the delay before checking again whether the call of a message has ended.
const callOver = 3 * time.Second

// processMessage transcribes a message, writes its note and rates its urgency. If the call was not recorded
// otherwise, transcript and note of the message become those of the call.
func (s *Service) processMessage(ctx context.Context, j job.Job) error {
	var ref messageRef
	if err := j.Bind(&ref); err != nil {
		return errors.Join(err, job.ErrDead)
	}
	callID, sound, size, err := s.Messages.Sound(ctx, j.Org, ref.VoicemailID)
	if db.IsNone(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open message %s: %w", ref.VoicemailID, err)
	}
	if sound != nil {
		defer sound.Close()
	}
	whole, err := s.Calls.Find(ctx, j.Org, callID)
	if err != nil {
		return fmt.Errorf("read call %s: %w", callID, err)
	}
	if whole.EndedAt == nil {
		return &job.Retry{After: callOver, Free: true, Cause: errors.New("the call goes on")}
	}
	alone := whole.Recording.RecordingID == nil
	if sound != nil {
		if err := s.understand(ctx, j, ref.VoicemailID, whole, sound, size, alone); err != nil {
			return err
		}
	}
	if !alone {
		return nil
	}
	return s.finishMessage(ctx, j, callID)
}

// transcribeMessage recognises a message and stores transcript, note and urgency.
func (s *Service) understand(ctx context.Context, j job.Job, id string, c call.Call, sound io.ReadSeeker, size int64, alone bool) error {
	now := db.At(s.Now())
	t := Transcript{ID: db.NewID("trn"), CallID: c.ID, VoicemailID: &id, Status: Processing, Language: s.language(), CreatedAt: now}
	segments, err := s.readMessage(ctx, sound, size, t.Language, s.vocabulary(j.Org, c.ID))
	if err := s.outcome(&t, segments, err, j.Last()); err != nil {
		return fmt.Errorf("recognise message %s: %w", id, err)
	}
	t.CompletedAt = &now
	n, _, err := s.write(ctx, j, facts{CDR: call.CDR{CallID: c.ID, Direction: call.Inbound, StartedAt: c.StartedAt}}, t)
	if err != nil && !j.Last() {
		return fmt.Errorf("write note of message %s: %w", id, err)
	}
	return s.DB.Tx(ctx, func(tx db.Querier) error {
		if !alone {
			t.ID = ""
		} else if err := s.keepMessage(ctx, tx, j.Org, t); err != nil {
			return err
		}
		return s.Messages.Understood(ctx, tx, j.Org, id, t, n, urgency(t.Text))
	})
}

// saveMessageTranscript stores the transcript of a message as that of its call.
func (s *Service) keepMessage(ctx context.Context, tx db.Querier, org string, t Transcript) error {
	if err := insert(ctx, tx, org, t); err != nil {
		return err
	}
	if err := finish(ctx, tx, org, t); err != nil {
		return err
	}
	return s.Calls.Note(ctx, tx, org, t.CallID, t.ID, "", "")
}

func (s *Service) readMessage(ctx context.Context, sound io.ReadSeeker, size int64, language string, v Vocabulary) ([]Segment, error) {
	if s.Pool == nil {
		return nil, errDisabled
	}
	segments, err := s.Pool.Read(ctx, &seekReader{r: sound}, size, Format{Encoding: PCMU, Rate: 8000, Channels: 1}, language, v)
	for i := range segments {
		segments[i].Speaker = Caller // a message has one speaker
	}
	return segments, err
}

// finishMessage publishes and indexes a call's transcript and note, which are those of its message.
func (s *Service) finishMessage(ctx context.Context, j job.Job, callID string) error {
	t, err := ofCall(ctx, s.DB.Read(ctx), j.Org, callID)
	if db.IsNone(err) { // it was deleted meanwhile
		return nil
	}
	if err != nil {
		return err
	}
	facts, err := s.facts(ctx, j.Org, callID)
	if err != nil {
		return err
	}
	n, err := s.summarise(ctx, j, facts, t)
	if err != nil {
		return err
	}
	return s.remember(ctx, j, facts, t, n)
}

// DeleteMessage deletes the transcript of a deleted message, in the caller's transaction.
func (s *Service) ForgetMessage(ctx context.Context, tx db.Querier, org, transcript string) error {
	t, err := byID(ctx, tx, org, transcript)
	if db.IsNone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.forgetWords(ctx, tx, org, t)
}
