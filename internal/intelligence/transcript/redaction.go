package transcript

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
	"soniq/internal/platform/redact"
	"soniq/internal/telephony/call/recording"
)

// Removal of numbers (package redact) from segments, from the live stream and from recordings.

// policy returns what an organisation removes from a call in a language.
func (s *Service) policy(ctx context.Context, org, language string) (redact.Policy, error) {
	p, err := s.Redactions.Redaction(ctx, org)
	return p.In(language), err
}

// passages converts segments. Source is the index.
func passages(segments []Segment) []redact.Passage {
	all := make([]redact.Passage, len(segments))
	for i, g := range segments {
		all[i] = redact.Passage{Speaker: string(g.Speaker), Text: g.Text, StartMS: g.StartMS, EndMS: g.EndMS, Source: i}
		for _, w := range g.Words {
			all[i].Words = append(all[i].Words, redact.Word{Text: w.Text, StartMS: w.StartMS, EndMS: w.EndMS})
		}
	}
	return all
}

// redactSegments returns segments without the numbers, and what was removed.
func redactSegments(p redact.Policy, segments []Segment) ([]Segment, []Redaction) {
	if !p.Enabled() {
		return segments, nil
	}
	segments = inOrder(slices.Clone(segments))
	return fromPassages(segments)(p.Apply(passages(segments)))
}

// unfinishedSegments is redactSegments for a conversation that goes on.
func unfinishedSegments(p redact.Policy, segments []Segment) ([]Segment, []Redaction) {
	if !p.Enabled() {
		return segments, []Redaction{}
	}
	segments = inOrder(slices.Clone(segments))
	return fromPassages(segments)(p.Unfinished(passages(segments)))
}

// fromPassages converts passages of segments back.
func fromPassages(of []Segment) func([]redact.Passage, []redact.Removal) ([]Segment, []Redaction) {
	return func(all []redact.Passage, removed []redact.Removal) ([]Segment, []Redaction) {
		out, parts := []Segment{}, []Redaction{}
		for _, p := range all {
			g := of[p.Source]
			if g.Text != p.Text {
				g.Text, g.Words = p.Text, keptWords(g.Words, p.Words)
			}
			out = append(out, g)
		}
		for _, r := range removed {
			parts = append(parts, Redaction{Kind: string(r.Kind), StartMS: r.StartMS, EndMS: r.EndMS})
		}
		return inOrder(out), parts
	}
}

// keptWords converts words of a passage, with the confidence of the segment's words.
func keptWords(before []Word, words []redact.Word) (out []Word) {
	for _, w := range words {
		x := Word{Text: w.Text, StartMS: w.StartMS, EndMS: w.EndMS}
		if i := slices.IndexFunc(before, func(b Word) bool { return b.StartMS == w.StartMS }); i >= 0 {
			x.Confidence = before[i].Confidence
		}
		out = append(out, x)
	}
	return out
}

// heardCall has the segments of a call without the numbers that the organisation removes.
type heardCall struct {
	segments   []Segment
	removed    []Redaction
	unsearched error // why speech in recordings was not searched for numbers, if they are to be removed from recordings too
}

// mergeRedactions returns the parts of both lists, in order and without duplicates.
func mergeRedactions(a, b []Redaction) []Redaction {
	all := slices.Concat(a, b)
	slices.SortFunc(all, func(x, y Redaction) int {
		return cmp.Or(x.StartMS-y.StartMS, x.EndMS-y.EndMS, cmp.Compare(x.Kind, y.Kind))
	})
	return slices.Compact(all)
}

// segmentStream removes numbers from the live segments of one call. It is safe for concurrent use.
type segmentStream struct {
	mu     sync.Mutex // guards the fields below
	stream *redact.Stream
	events []event.CallTranscriptSegment
}

// push adds a segment, and returns those that can be published.
func (s *segmentStream) push(e event.CallTranscriptSegment) []event.CallTranscriptSegment {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
	return s.released(s.stream.Push(redact.Passage{Speaker: e.Speaker, Text: e.Text, StartMS: e.StartMS, EndMS: e.EndMS,
		Source: len(s.events) - 1}))
}

// flush returns the segments that were held back.
func (s *segmentStream) flush() []event.CallTranscriptSegment {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.released(s.stream.Flush())
}

func (s *segmentStream) released(all []redact.Passage) (out []event.CallTranscriptSegment) {
	for _, p := range all {
		e := s.events[p.Source]
		e.Text = p.Text
		out = append(out, e)
	}
	return out
}

// publishSegment publishes a segment on the live stream, without numbers that the organisation removes. It may wait for the next segment.
func (s *Service) publishSegment(org string, e event.CallTranscriptSegment) {
	ctx := context.Background()
	policy, err := s.Redactions.Redaction(ctx, org)
	if err != nil {
		s.Log.Warn("words of a call not streamed", "org", org, "call", e.CallID, "err", err)
		return
	}
	if !policy.Enabled() {
		s.publishSegments(org, []event.CallTranscriptSegment{e})
		return
	}
	s.publishSegments(org, s.streamOf(org, e.CallID, policy).push(e))
}

// streamOf returns the stream of a call.
func (s *Service) streamOf(org, callID string, policy redact.Policy) *segmentStream {
	key := org + " " + callID
	s.mu.Lock()
	x := s.streams[key]
	s.mu.Unlock()
	if x != nil {
		return x
	}
	ctx := context.Background()
	policy = policy.In(s.language(ctx, s.DB.Read(ctx), org, callID))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams == nil {
		s.streams = map[string]*segmentStream{}
	}
	if s.streams[key] == nil {
		s.streams[key] = &segmentStream{stream: policy.NewStream()}
	}
	return s.streams[key]
}

func (s *Service) publishSegments(org string, all []event.CallTranscriptSegment) {
	for _, e := range all {
		if err := s.Outbox.PublishEphemeral(org, e); err != nil {
			s.Log.Warn("words of a call not streamed", "org", org, "call", e.CallID, "err", err)
		}
	}
}

// maxServerRetry limits otherServerRetry.
const maxServerRetry = time.Minute

// otherServerRetry returns the delay of a job for whose files another server is needed: a tenth of the time that it has waited, so that a
// server that never returns costs little.
func otherServerRetry(waited time.Duration) time.Duration {
	return min(max(waited/10, time.Second), maxServerRetry)
}

// awaitFiles returns an error that repeats the job if recordings from which numbers are to be removed are on another server.
func (s *Service) awaitFiles(ctx context.Context, j job.Job, callID string) error {
	parts, err := s.Recordings.Parts(ctx, j.Org, callID)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if p.Pending() && !s.Recordings.IsLocal(p) {
			waited := s.Clock.Now().Sub(j.CreatedAt.Time)
			return &job.Retry{After: otherServerRetry(waited), NotCounted: true, Cause: fmt.Errorf("recording %s is on another server", p.ID)}
		}
	}
	return nil
}

// redactAudio removes the numbers of a transcript from the recordings of a call, and makes recordings available that wait for it. If there
// is no transcript they are withheld. On the last attempt of the job no error stops the rest.
func (s *Service) redactAudio(ctx context.Context, j job.Job, callID string, t Transcript) error {
	policy, err := s.policy(ctx, j.Org, t.Language)
	if err != nil {
		return err
	}
	parts, err := s.Recordings.Parts(ctx, j.Org, callID)
	if err != nil {
		return err
	}
	var failed error
	for _, p := range parts {
		if !p.Available || !p.Pending() && !policy.Audio {
			continue
		}
		if reason := unreadable(t); reason != "" {
			failed = errors.Join(failed, s.Recordings.Withhold(ctx, j.Org, callID, p, reason))
			continue
		}
		err := s.Recordings.Redact(ctx, j.Org, callID, p, t.redactionsOf(p, parts[0]))
		if err != nil && j.Last() {
			s.Log.Error("recording withheld", "org", j.Org, "call", callID, "recording", p.ID, "err", err)
			err = s.Recordings.Withhold(ctx, j.Org, callID, p, "its file could not be rewritten")
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// unreadable returns why a transcript cannot tell which numbers a recording has; "" if it can. What is too short or silent has none.
func unreadable(t Transcript) string {
	switch {
	case t.Error != nil:
		return t.Error.Message
	case t.Status == Completed:
		return ""
	case t.SkippedReason != nil && (*t.SkippedReason == SkippedNoAudio || *t.SkippedReason == SkippedTooShort):
		return ""
	case t.SkippedReason != nil:
		return "transcript skipped: " + *t.SkippedReason
	}
	return "no transcript"
}

// redactionsOf returns the parts of one recording; times of a transcript count from the start of the first.
func (t Transcript) redactionsOf(p, first recording.Part) (all []recording.Redaction) {
	offset := int(p.StartedAt.Sub(first.StartedAt).Milliseconds())
	for _, r := range t.Redactions {
		if r.EndMS > offset {
			all = append(all, recording.Redaction{Kind: redact.Kind(r.Kind), StartMS: max(r.StartMS-offset, 0), EndMS: r.EndMS - offset})
		}
	}
	return all
}
