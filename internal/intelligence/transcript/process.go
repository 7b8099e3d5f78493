package transcript

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"soniq/internal/intelligence/memory"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/call/recording"
)

// process runs the job of a recorded call: transcript, note and call memory. Each step checks the stored state, so
// that a job repeated after a crash or an error continues at the step where it stopped.
func (s *Service) process(ctx context.Context, j job.Job) error {
	var ref callRef
	if err := j.Bind(&ref); err != nil {
		return errors.Join(err, job.ErrDead)
	}
	if err := s.awaitFiles(ctx, j, ref.CallID); err != nil {
		return err
	}
	t, err := s.transcribe(ctx, j, ref.CallID)
	if db.IsNone(err) { // it was deleted meanwhile
		return s.redactAudio(ctx, j, ref.CallID, Transcript{Status: Failed})
	}
	if err != nil {
		return err
	}
	if err := s.redactAudio(ctx, j, ref.CallID, t); err != nil {
		return err
	}
	facts, err := s.loadCallFacts(ctx, j.Org, ref.CallID)
	if err != nil {
		return err
	}
	n, err := s.summarise(ctx, j, facts, t)
	if db.IsNone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	s.dropLive(j.Org, ref.CallID)
	return s.indexCall(ctx, j, facts, t, n)
}

// callFacts has the call record and the recording of a call.
type callFacts struct {
	call.CDR
	recordingID string
}

func (s *Service) loadCallFacts(ctx context.Context, org, callID string) (callFacts, error) {
	record, err := s.cfg.Calls.FindCDR(ctx, org, callID)
	if err != nil {
		return callFacts{}, fmt.Errorf("read record of call %s: %w", callID, err)
	}
	whole, err := s.cfg.Calls.Get(access.With(ctx, access.Principal{OrgID: org}), &call.GetIn{ID: callID})
	if err != nil {
		return callFacts{}, fmt.Errorf("read call %s: %w", callID, err)
	}
	f := callFacts{CDR: record}
	if id := whole.Body.Recording.RecordingID; id != nil {
		f.recordingID = *id
	}
	return f, nil
}

// transcribe brings the transcript of a call to its final state and returns it.
func (s *Service) transcribe(ctx context.Context, j job.Job, callID string) (Transcript, error) {
	t, err := transcriptOfCall(ctx, s.cfg.DB.Read(ctx), j.Org, callID)
	if err != nil {
		return t, fmt.Errorf("read transcript of %s: %w", callID, err)
	}
	if t.Status.final() {
		return t, nil
	}
	err = s.cfg.DB.Tx(ctx, func(tx db.Querier) error { return markProcessing(ctx, tx, j.Org, callID) })
	if err != nil {
		return t, fmt.Errorf("begin transcript of %s: %w", callID, err)
	}
	before := t
	heard, err := s.allSegments(ctx, j.Org, t)
	t.Redactions = mergeRedactions(before.Redactions, heard.removed)
	if err := s.setOutcome(&t, heard.segments, err, j.Last()); err != nil {
		return t, err
	}
	if heard.unsearched != nil && t.Status == Completed {
		t.Error = &event.Fault{Code: "transcript_incomplete", Message: heard.unsearched.Error()}
	}
	t.keepPrevious(before)
	done := db.At(s.cfg.Clock.Now())
	t.CompletedAt = &done
	err = s.cfg.DB.Tx(ctx, func(tx db.Querier) error { return saveFinal(ctx, tx, j.Org, t) })
	if err != nil {
		return t, fmt.Errorf("write transcript of %s: %w", callID, err)
	}
	return t, nil
}

// segments returns the segments of all recordings of a call, from live transcription or from the files. The error is
// why a part is missing.
func (s *Service) segments(ctx context.Context, org string, t Transcript, outbound bool) ([]Segment, error) {
	if s.cfg.Pool == nil {
		return nil, ErrDisabled
	}
	if err := CheckLanguage(s.cfg.Recognizer, t.Language); err != nil {
		return nil, err
	}
	parts, err := s.cfg.Recordings.Parts(ctx, org, t.CallID)
	if err != nil {
		return nil, err
	}
	heard := s.liveOf(org, t.CallID)
	if len(parts) == 0 {
		return heard.segments(), errNoFile
	}
	recorded := Format{Encoding: PCMU, Rate: 8000, Channels: 2, Outbound: outbound}
	var all []Segment
	var failed error
	for _, p := range parts {
		said, err := s.partSegments(ctx, p, recorded, t.Language, heard, s.vocabulary(org, t.CallID))
		all = append(all, shifted(said, p.StartedAt.Sub(parts[0].StartedAt))...)
		failed = moreActionable(failed, err)
	}
	if len(all) > 0 && (errors.Is(failed, ErrTooShort) || errors.Is(failed, errNoFile)) {
		failed = nil // one of several recordings was empty
	}
	return inOrder(all), failed
}

// moreActionable returns the error that an operator can do more about.
func moreActionable(a, b error) error {
	if a == nil || b != nil && (errors.Is(a, ErrTooShort) || errors.Is(a, errNoFile)) {
		return b
	}
	return a
}

// partSegments returns the segments of one recording.
func (s *Service) partSegments(ctx context.Context, p recording.Part, raw Format, language string, h liveRecordings,
	v Vocabulary) ([]Segment, error) {
	var heard []Segment
	if path, err := s.cfg.Recordings.Path(p); err != nil {
		return nil, err
	} else if l := h.forPath(path); l != nil {
		l.LiveTranscription.End()
		if heard, err = l.Wait(ctx); err == nil {
			return heard, nil
		}
		if _, missing := AsMissingDependency(err); missing {
			return heard, err
		}
	}
	again, err := s.readRecording(ctx, p, raw, language, v)
	if len(again) < len(heard) {
		again = heard
	}
	return again, err
}

// ErrDisabled is returned if transcription is switched off.
var ErrDisabled = errors.New("transcription is switched off")

var errNoFile = errors.New("the call has no recording")

// readRecording recognises a recording from its beginning. raw is its format if it has no header.
func (s *Service) readRecording(ctx context.Context, p recording.Part, raw Format, language string, v Vocabulary) ([]Segment, error) {
	if !p.Available {
		return nil, errNoFile
	}
	f, size, err := s.cfg.Recordings.Open(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("open recording %s: %w", p.ID, err)
	}
	defer f.Close()
	return s.cfg.Pool.TranscribeFile(ctx, &seekReader{r: f}, size, raw, language, v)
}

// seekReader is an io.ReaderAt over an io.ReadSeeker.
type seekReader struct {
	mu sync.Mutex // guards r's position
	r  io.ReadSeeker
}

// ReadAt implements io.ReaderAt.
func (s *seekReader) ReadAt(p []byte, off int64) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.r.Seek(off, io.SeekStart); err != nil {
		return 0, err
	}
	n, err := io.ReadFull(s.r, p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

// summarise brings the note to its final state. In the same transaction it publishes call.transcription, and
// call.ended to subscribers of the enriched event.
func (s *Service) summarise(ctx context.Context, j job.Job, c callFacts, t Transcript) (Note, error) {
	sum, announced, err := summaryOf(ctx, s.cfg.DB.Read(ctx), j.Org, c.CallID)
	if err != nil {
		return Note{}, fmt.Errorf("read note of %s: %w", c.CallID, err)
	}
	if announced {
		return sum.note(), nil
	}
	n, status, err := s.writeNote(ctx, j, c, t)
	if err != nil && !j.Last() {
		return n, fmt.Errorf("write note of %s: %w", c.CallID, err)
	}
	err = s.cfg.DB.Tx(ctx, func(tx db.Querier) error { return s.announce(ctx, tx, j.Org, t, n, status, err) })
	if err != nil {
		return n, fmt.Errorf("keep note of %s: %w", c.CallID, err)
	}
	return n, nil
}

// note returns the note of a summary.
func (s Summary) note() Note {
	n := Note{Summary: s.AISummary, Topics: s.Topics, ActionItems: s.ActionItems, Evidence: s.Evidence, Engine: s.Engine, Flags: s.Flags,
		Entities: s.Entities, Stats: s.Stats}
	if s.Outcome != nil {
		n.Outcome = Outcome(*s.Outcome)
	}
	if s.Sentiment != nil {
		n.Sentiment = *s.Sentiment
	}
	return n
}

// writeNote writes the note, with the fallback if the summariser fails.
func (s *Service) writeNote(ctx context.Context, j job.Job, c callFacts, t Transcript) (Note, Status, error) {
	if t.Status != Completed || s.cfg.Summarizer == nil {
		return Note{Stats: talkStatsOf(t.Segments)}, Skipped, nil
	}
	conv := Conversation{CallID: c.CallID, Direction: string(c.Direction), StartedAt: c.StartedAt.Time, Language: t.Language,
		Turns: turnsOf(t.Segments)}
	language := t.Language
	if t.Error != nil { // words of an earlier attempt, whose language is not stored
		language = ""
	}
	writer := s.writerOf(language)
	if writer == nil {
		return Note{Stats: talkStatsOf(t.Segments)}, Skipped, nil
	}
	n, err := writer.Summarise(ctx, conv)
	if err != nil && s.cfg.Fallback != nil && CheckLanguage(s.cfg.Fallback, language) == nil {
		s.cfg.Log.Warn("writer failed, the builtin one writes", "call", c.CallID, "err", err)
		n, err = s.cfg.Fallback.Summarise(ctx, conv)
	}
	n.Stats = talkStatsOf(t.Segments)
	if err != nil {
		return n, Failed, err
	}
	n.setDueTimes(c.StartedAt.In(s.zone(ctx, j.Org)))
	return n, Completed, nil
}

// writerOf returns the summariser for a language; nil if none supports it.
func (s *Service) writerOf(language string) Summarizer {
	for _, w := range []Summarizer{s.cfg.Summarizer, s.cfg.Fallback} {
		if w != nil && CheckLanguage(w, language) == nil {
			return w
		}
	}
	return nil
}

// announce stores the note and publishes it, once.
func (s *Service) announce(ctx context.Context, tx db.Querier, org string, t Transcript, n Note, status Status, failed error) error {
	var fault *event.Fault
	if status == Failed {
		fault = event.NewFault("summary_failed", failed)
	}
	first, err := finishSummary(ctx, tx, org, t.CallID, status, n, fault, db.At(s.cfg.Clock.Now()))
	if err != nil || !first {
		return err
	}
	if err := s.cfg.Calls.SetSummary(ctx, tx, org, t.CallID, t.ID, n.Summary, string(n.Sentiment.Overall)); err != nil {
		return err
	}
	if err := s.cfg.Outbox.Publish(ctx, tx, org, transcriptionEvent(t, n, status, fault)); err != nil {
		return err
	}
	return s.cfg.Calls.PublishEnriched(ctx, tx, org, t.CallID, true)
}

// transcriptionEvent returns the event for a transcript and its note.
func transcriptionEvent(t Transcript, n Note, status Status, fault *event.Fault) event.CallTranscription {
	e := event.CallTranscription{CallID: t.CallID, TranscriptID: t.ID, Status: string(t.Status), Topics: n.Topics,
		ActionItems: []event.ActionItem{}, SummaryStatus: string(status), Error: t.Error}
	if e.Topics == nil {
		e.Topics = []string{}
	}
	if e.Error == nil {
		e.Error = fault
	}
	if t.Status == Completed {
		e.Language, e.Text = &t.Language, &t.Text
	}
	if status == Completed {
		mood := string(n.Sentiment.Overall)
		e.AISummary, e.Sentiment = &n.Summary, &mood
	}
	for _, a := range n.ActionItems {
		e.ActionItems = append(e.ActionItems, event.ActionItem{Text: a.Text, Owner: a.Owner, Due: a.Due})
	}
	return e
}

// indexCall adds the call to the call memory. If embedding fails for good, the call is found by its words only.
func (s *Service) indexCall(ctx context.Context, j job.Job, c callFacts, t Transcript, n Note) error {
	if s.cfg.Memory == nil {
		return nil
	}
	sum, _, err := summaryOf(ctx, s.cfg.DB.Read(ctx), j.Org, c.CallID)
	if db.IsNone(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read note of %s: %w", c.CallID, err)
	}
	if sum.Embedding.Status != embeddingPending {
		return nil
	}
	lesson, failed := s.cfg.Memory.Prepare(ctx, memoryCall(c, t, n))
	if failed != nil && !j.Last() {
		return failed
	}
	e := Embedding{Status: embeddingIndexed, Model: lesson.Model().Name, Dimensions: lesson.Model().Dimensions}
	switch {
	case failed != nil:
		e.Status = embeddingFailed
	case e.Model == "":
		e.Status = embeddingSkipped
	}
	err = s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		known, err := setEmbedding(ctx, tx, j.Org, c.CallID, e)
		if err != nil || !known {
			return err
		}
		return s.cfg.Memory.IndexCall(ctx, tx, j.Org, lesson)
	})
	if err != nil {
		return fmt.Errorf("remember call %s: %w", c.CallID, err)
	}
	return nil
}

// PassagesEmbedded implements memory.EmbeddingObserver: it records, in the caller's transaction, that the passages of a call were embedded
// after its note was written.
func (s *Service) PassagesEmbedded(ctx context.Context, tx db.Querier, org, callID string, m memory.Model) error {
	_, err := setEmbedding(ctx, tx, org, callID, Embedding{Status: embeddingIndexed, Model: m.Name, Dimensions: m.Dimensions})
	return err
}

// memoryCall converts a call for the call memory.
func memoryCall(c callFacts, t Transcript, n Note) memory.Call {
	m := memory.Call{ID: c.CallID, Phone: otherSide(c), At: c.StartedAt.Time, Direction: string(c.Direction),
		Status: string(c.Status), TalkSeconds: c.TalkDurationSeconds, RecordingID: c.recordingID, Tags: c.Tags, Summary: n.Summary,
		Outcome: string(n.Outcome), Sentiment: string(n.Sentiment.Overall), Topics: n.Topics}
	if c.Agent != nil {
		m.AgentID, m.AgentName = c.Agent.ID, c.Agent.Name
	}
	if c.Queue != nil {
		m.QueueID = c.Queue.ID
	}
	if c.Contact != nil {
		m.ContactID = c.Contact.ID
	}
	for _, a := range n.ActionItems {
		m.Items = append(m.Items, memory.Item{Text: a.Text, Owner: a.Owner, Due: a.Due})
	}
	for _, s := range t.Segments {
		m.Turns = append(m.Turns, memory.Turn{Speaker: s.Speaker.label(), Text: s.Text, StartMS: s.StartMS, EndMS: s.EndMS})
	}
	return m
}

// otherSide returns the number of the external party: the caller's, or the called number on outbound calls.
func otherSide(c callFacts) string {
	if c.Direction == call.Outbound {
		return c.ToNumber
	}
	return c.FromNumber
}
