package transcript

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/platform/visibility"
	"soniq/internal/telephony/call"
)

// Operations returns the API operations for transcripts and summaries.
func (s *Service) Operations() []op.Operation {
	return []op.Operation{
		withFormats(op.NewStream("calls.transcript", "GET /calls/{id}/transcript", access.CallsRead, "Get what was said on a call",
			s.transcriptOf)),
		op.New("calls.summary", "GET /calls/{id}/summary", access.CallsRead, "Get the summary of a call", s.summary),
		op.New("transcripts.list", "GET /transcripts", access.CallsRead, "List transcripts, newest first", s.list),
		withFormats(op.NewStream("transcripts.get", "GET /transcripts/{id}", access.CallsRead, "Get one transcript", s.get)),
		op.New("transcripts.retry", "POST /transcripts/{id}/retry", access.CallsWrite, "Make a transcript again", s.retry).Status(202),
		op.Delete("transcripts.delete", "DELETE /transcripts/{id}", access.CallsWrite, "Delete a transcript and all that came of it",
			s.remove),
	}
}

// withFormats declares the formats of a transcript in the response.
func withFormats(o op.Operation) op.Operation {
	return o.Answers(200, "application/json", Transcript{}).Answers(200, "text/plain", nil).Answers(200, "text/vtt", nil).
		Answers(200, "application/x-subrip", nil)
}

// Shape selects the format of a transcript.
type Shape struct {
	Format string `query:"format" enum:"json,text,vtt,srt" default:"json" doc:"json, plain text, or subtitles as WebVTT or SubRip"`
	Words  bool   `query:"words" doc:"Add the words with their times (json only)"`
}

// OfCallIn selects the call of a transcript.
type OfCallIn struct {
	ID string `path:"id" maxLength:"40" doc:"Call"`
	Shape
}

// GetIn selects a transcript.
type GetIn struct {
	ID string `path:"id" maxLength:"40" doc:"Transcript"`
	Shape
}

// SummaryIn selects the call of a summary.
type SummaryIn struct {
	ID string `path:"id" maxLength:"40" doc:"Call"`
}

// ListIn filters the list of transcripts.
type ListIn struct {
	op.Paging
	op.Span
	CallID   string   `query:"call_id" maxLength:"40" doc:"Only of this call"`
	Status   []string `query:"status" enum:"live,queued,processing,completed,failed,skipped" doc:"Only in these states"`
	Language string   `query:"language" maxLength:"20" doc:"Only in this language"`
	Q        string   `query:"q" maxLength:"200" doc:"Only those that hold this text"`
}

// Of returns the transcript of a call; for a call in progress, its segments so far. The error is a not_found for a
// call without one.
func (s *Service) Of(ctx context.Context, org, callID string) (*Transcript, error) {
	t, err := transcriptOfCall(ctx, s.cfg.DB.Read(ctx), org, callID)
	if db.IsNone(err) {
		return s.liveTranscript(ctx, org, callID)
	}
	if err != nil {
		return nil, fmt.Errorf("read transcript of %s: %w", callID, err)
	}
	if t.Status.final() {
		return &t, nil
	}
	said, err := s.knownUtterances(ctx, s.cfg.DB.Read(ctx), org, callID)
	if err != nil {
		return nil, err
	}
	if h := s.liveOf(org, callID); h != nil || len(said) > 0 {
		if err := s.setLiveSegments(ctx, org, &t, h, said); err != nil {
			return nil, err
		}
	}
	return &t, nil
}

// liveTranscript returns the transcript of a call that is being transcribed.
func (s *Service) liveTranscript(ctx context.Context, org, callID string) (*Transcript, error) {
	h := s.liveOf(org, callID)
	said, err := s.knownUtterances(ctx, s.cfg.DB.Read(ctx), org, callID)
	if err != nil {
		return nil, err
	}
	t := &Transcript{CallID: callID, Status: InProgress, Language: s.language(ctx, s.cfg.DB.Read(ctx), org, callID),
		Redactions: []Redaction{}}
	switch {
	case h != nil:
		t.ID, t.CreatedAt = h[0].id, db.At(h[0].began)
	case len(said) > 0 && s.isInProgress(ctx, org, callID):
		t.ID, t.CreatedAt = "trn_"+strings.TrimPrefix(callID, "call_"), db.At(said[0].Began)
	default:
		return nil, op.NotFound("transcript of this call")
	}
	if err := s.setLiveSegments(ctx, org, t, h, said); err != nil {
		return nil, err
	}
	t.Engine = s.engineOf(t.Segments)
	if err := CheckLanguage(s.cfg.Recognizer, t.Language); err != nil && len(said) == 0 {
		return t, s.setOutcome(t, nil, err, true)
	}
	return t, nil
}

// isInProgress reports whether a call is in progress.
func (s *Service) isInProgress(ctx context.Context, org, callID string) bool {
	c, err := s.cfg.Calls.Get(access.With(ctx, access.Principal{OrgID: org}), &call.GetIn{ID: callID})
	return err == nil && c.Body.EndedAt == nil
}

// setLiveSegments sets the segments recognised so far, without numbers that the organisation removes, and without the beginnings of such
// numbers.
func (s *Service) setLiveSegments(ctx context.Context, org string, t *Transcript, h liveRecordings, said []KnownUtterance) error {
	policy, err := s.policy(ctx, org, t.Language)
	if err != nil {
		return err
	}
	t.Segments = h.segments()
	if len(said) > 0 {
		zero, outbound := said[0].Began, false
		if len(h) > 0 {
			zero, outbound = h[0].began, h[0].format.Outbound
		}
		t.Segments = withUtterances(t.Segments, said, zero, outbound)
	}
	t.Segments, t.Redactions = unfinishedSegments(policy, t.Segments)
	t.Text, t.WordCount = TextOf(t.Segments), wordCount(t.Segments)
	for _, s := range t.Segments {
		t.DurationSeconds = max(t.DurationSeconds, (s.EndMS+999)/1000)
	}
	return nil
}

// SummaryOf returns the note of a call. It is pending as soon as the call has a transcript. The error is a not_found for a call without
// one.
func (s *Service) SummaryOf(ctx context.Context, org, callID string) (*Summary, error) {
	sum, _, err := summaryOf(ctx, s.cfg.DB.Read(ctx), org, callID)
	if db.IsNone(err) {
		return s.pendingSummary(ctx, org, callID)
	}
	if err != nil {
		return nil, fmt.Errorf("read note of %s: %w", callID, err)
	}
	return &sum, nil
}

// pendingSummary returns the note of a call whose transcript is not stored yet.
func (s *Service) pendingSummary(ctx context.Context, org, callID string) (*Summary, error) {
	t, err := s.liveTranscript(ctx, org, callID)
	if missing := (*op.Error)(nil); errors.As(err, &missing) {
		return nil, op.NotFound("summary of this call")
	}
	if err != nil {
		return nil, err
	}
	sum := &Summary{CallID: callID, Status: Pending, Language: t.Language, CreatedAt: t.CreatedAt,
		Embedding: Embedding{Status: embeddingPending}}
	sum.setNote(Note{})
	return sum, nil
}

func (s *Service) transcriptOf(ctx context.Context, in *OfCallIn) (*huma.StreamResponse, error) {
	t, err := s.Of(ctx, access.Org(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return in.write(*t), nil
}

func (s *Service) get(ctx context.Context, in *GetIn) (*huma.StreamResponse, error) {
	t, err := transcriptByID(ctx, s.cfg.DB.Read(ctx), access.Org(ctx), in.ID)
	if db.IsNone(err) {
		return nil, op.NotFound("transcript")
	}
	if err != nil {
		return nil, fmt.Errorf("read transcript %s: %w", in.ID, err)
	}
	return in.write(t), nil
}

// write returns the response in the requested format.
func (x Shape) write(t Transcript) *huma.StreamResponse {
	switch x.Format {
	case "text":
		return textStream("text/plain; charset=utf-8", t.Text+"\n")
	case "vtt":
		return textStream("text/vtt; charset=utf-8", WebVTT(t.Segments))
	case "srt":
		return textStream("application/x-subrip; charset=utf-8", SubRip(t.Segments))
	}
	return op.JSONStream(t.withWords(x.Words))
}

func textStream(kind, text string) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(h huma.Context) {
		h.SetHeader("Content-Type", kind)
		h.SetStatus(http.StatusOK)
		_, _ = h.BodyWriter().Write([]byte(text))
	}}
}

func (s *Service) summary(ctx context.Context, in *SummaryIn) (*op.Out[Summary], error) {
	sum, err := s.SummaryOf(ctx, access.Org(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return op.OK(*sum)
}

func (s *Service) list(ctx context.Context, in *ListIn) (*op.Out[op.Page[Transcript]], error) {
	after, err := in.After(ctx)
	if err != nil {
		return nil, err
	}
	since, until, err := in.Times()
	if err != nil {
		return nil, err
	}
	view, err := visibility.From(ctx, s.cfg.DB.Read(ctx))
	if err != nil {
		return nil, err
	}
	const text = `SELECT ` + transcriptColumns + ` FROM transcripts WHERE org_id = $1`
	f := s.applyFilters(view.Narrow(db.Where(text, access.Org(ctx)), "call_id"), in).Between("created_at", since, until).
		Page("created_at", true, after.Int, after.ID, in.Limit)
	rows, err := listTranscripts(ctx, s.cfg.DB.Read(ctx), f)
	if err != nil {
		return nil, fmt.Errorf("list transcripts: %w", err)
	}
	out := op.Paged(ctx, in.Paging, rows, func(t Transcript) op.Position {
		return op.Position{Int: t.CreatedAt.UnixMicro(), ID: t.ID}
	})
	if in.IncludeTotal {
		const count = `SELECT COUNT(*) FROM transcripts WHERE org_id = $1`
		var n int
		text, args := s.applyFilters(view.Narrow(db.Where(count, access.Org(ctx)), "call_id"), in).Between("created_at", since, until).SQL()
		if err := s.cfg.DB.Read(ctx).QueryRow(ctx, text, args...).Scan(&n); err != nil {
			return nil, fmt.Errorf("count transcripts: %w", err)
		}
		out.Body.Total = &n
	}
	return out, nil
}

func (s *Service) applyFilters(f *db.Filter, in *ListIn) *db.Filter {
	f.Equal("call_id", in.CallID).In("status", in.Status).Equal("language", in.Language)
	if in.Q != "" {
		f.And(`lower(text) LIKE lower(?) ESCAPE '\'`, "%"+db.Escape(in.Q)+"%")
	}
	return f
}
