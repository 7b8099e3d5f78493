package call

import (
	"context"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/op"
	"soniq/internal/platform/visibility"
)

// CDR is the call detail record of a call that has ended.
type CDR struct {
	ID                  string            `json:"id" example:"cdr_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	CallID              string            `json:"call_id"`
	Direction           Direction         `json:"direction" enum:"inbound,outbound,internal"`
	Status              Status            `json:"status"`
	FromNumber          string            `json:"from_number"`
	FromName            *string           `json:"from_name"`
	ToNumber            string            `json:"to_number"`
	NumberID            *string           `json:"number_id"`
	FlowID              *string           `json:"flow_id"`
	FlowVersion         *int              `json:"flow_version"`
	Queue               *Named            `json:"queue"`
	Agent               *Agent            `json:"agent"`
	AgentsOffered       []OfferedAgent    `json:"agents_offered" nullable:"false"`
	Contact             *event.Contact    `json:"contact"`
	StartedAt           db.Time           `json:"started_at"`
	AnsweredAt          *db.Time          `json:"answered_at"`
	EndedAt             db.Time           `json:"ended_at"`
	RingSeconds         int               `json:"ring_seconds"`
	QueueSeconds        int               `json:"queue_seconds"`
	HoldSeconds         int               `json:"hold_seconds"`
	WrapUpSeconds       int               `json:"wrap_up_seconds"`
	TalkDurationSeconds int               `json:"talk_duration_seconds"`
	TotalSeconds        int               `json:"total_seconds"`
	EndReason           *string           `json:"end_reason"`
	HangupBy            *string           `json:"hangup_by"`
	MissedReason        *string           `json:"missed_reason"`
	Disposition         *string           `json:"disposition"`
	SIPStatus           *int              `json:"sip_status"`
	Q850Cause           *int              `json:"q850_cause"`
	RecordingURL        *string           `json:"recording_url"`
	TranscriptID        *string           `json:"transcript_id"`
	AISummary           *string           `json:"ai_summary"`
	Sentiment           *string           `json:"sentiment"`
	Tags                []string          `json:"tags" nullable:"false"`
	VoicemailID         *string           `json:"voicemail_id"`
	TransferredTo       *string           `json:"transferred_to"`
	Quality             *event.Quality    `json:"quality"`
	TrunkID             *string           `json:"trunk_id"`
	ClientReference     *string           `json:"client_reference"`
	Metadata            map[string]string `json:"metadata"`
	Sandbox             bool              `json:"sandbox"`
}

// Named holds an id and a name.
type Named struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Agent is the user that was connected last.
type Agent struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Extension string `json:"extension"`
}

func (c Call) toCDR() CDR {
	r := CDR{ID: c.internal.CDRID, CallID: c.ID, Direction: c.Direction, Status: c.Status, FromNumber: c.FromNumber, FromName: c.FromName,
		ToNumber: c.ToNumber, NumberID: c.NumberID, FlowID: c.FlowID, FlowVersion: c.internal.FlowVersion, AgentsOffered: []OfferedAgent{},
		Contact: c.Contact, StartedAt: c.StartedAt, AnsweredAt: c.AnsweredAt, RingSeconds: c.RingSeconds, QueueSeconds: c.QueueSeconds,
		HoldSeconds: c.HoldSeconds, TalkDurationSeconds: c.TalkDurationSeconds, TotalSeconds: c.TotalSeconds, EndReason: c.EndReason,
		HangupBy: c.HangupBy, MissedReason: c.MissedReason, Disposition: c.Disposition, SIPStatus: c.SIPStatus, Q850Cause: c.Q850Cause,
		RecordingURL: c.RecordingURL, TranscriptID: c.TranscriptID, AISummary: c.AISummary, Sentiment: c.Sentiment, Tags: c.Tags,
		Quality: c.Quality, TrunkID: db.Null(c.internal.TrunkID).Ptr(), ClientReference: c.ClientReference, Metadata: c.Metadata,
		Sandbox: c.Sandbox, TransferredTo: db.Null(c.internal.TransferredTo).Ptr(),
		VoicemailID: db.Null(c.internal.VoicemailID).Ptr()}
	if c.EndedAt != nil {
		r.EndedAt = *c.EndedAt
	}
	if c.QueueID != nil {
		r.Queue = &Named{ID: *c.QueueID}
	}
	if c.AgentID != nil {
		r.Agent = &Agent{ID: *c.AgentID, Name: c.internal.AgentName, Extension: c.internal.AgentExtension}
	}
	return r
}

// EndedFilter selects call detail records.
type EndedFilter struct {
	Filters
	Disposition, MissedReason, HangupBy string
}

func (in EndedFilter) where(f *db.Filter) *db.Filter {
	return f.Equal("disposition", in.Disposition).Equal("missed_reason", in.MissedReason).Equal("hangup_by", in.HangupBy)
}

// between adds the conditions of the filter and of the time at which the calls ended.
func (in EndedFilter) between(f *db.Filter, since, until db.Time) (*db.Filter, error) {
	f = in.where(f).Between("ended_at", since, until)
	return f, in.apply(f, "ended_at")
}

// CDRPage returns a page of the call detail records of the credential's organisation.
func (s *Service) CDRPage(ctx context.Context, in EndedFilter, sort string) (op.Page[CDR], error) {
	all := func(columns string) *db.Filter {
		return in.where(db.Where(`SELECT `+columns+` FROM calls WHERE org_id = $1 AND ended_at IS NOT NULL`, access.Org(ctx)))
	}
	page, err := s.page(ctx, in.Filters, all, sort, "ended_at")
	if err != nil {
		return op.Page[CDR]{}, err
	}
	records, err := s.records(ctx, access.Org(ctx), page.Body.Data)
	if err != nil {
		return op.Page[CDR]{}, err
	}
	out := op.Paged(ctx, in.Paging, records, nil)
	out.Body.NextCursor, out.Body.HasMore, out.Body.Total = page.Body.NextCursor, page.Body.HasMore, page.Body.Total
	return out.Body, nil
}

// records returns the call detail records of calls whose recordings have URLs.
func (s *Service) records(ctx context.Context, org string, calls []Call) ([]CDR, error) {
	records := make([]CDR, len(calls))
	for i, c := range calls {
		records[i] = c.toCDR()
	}
	return records, s.addQueueDetails(ctx, org, records)
}

// FindCDR returns the record of a call by its own id or the call's, or db.ErrNone.
func (s *Service) FindCDR(ctx context.Context, org, id string) (CDR, error) {
	c, err := getCDR(ctx, s.cfg.DB.Read(ctx), org, id)
	if err != nil {
		return CDR{}, err
	}
	s.setRecordingURL(&c)
	one, err := s.records(ctx, org, []Call{c})
	return one[0], err
}

// shownCDRs adds the conditions of a filter, and those of what the principal sees.
func (s *Service) shownCDRs(ctx context.Context, org string, f *db.Filter, in EndedFilter, since, until db.Time) (*db.Filter, error) {
	view, err := visibility.From(ctx, s.cfg.DB.Read(ctx))
	if err == nil {
		err = in.storeForms(ctx, s.cfg.DB.Read(ctx), org)
	}
	if err != nil {
		return nil, err
	}
	return in.between(view.Narrow(f, "id"), since, until)
}

// CountCDRs counts the records of an organisation whose calls ended between two times.
func (s *Service) CountCDRs(ctx context.Context, org string, in EndedFilter, since, until db.Time) (int, error) {
	f, err := s.shownCDRs(ctx, org, db.Where(`SELECT id FROM calls WHERE org_id = $1 AND ended_at IS NOT NULL`, org), in, since, until)
	if err != nil {
		return 0, err
	}
	return f.Count(ctx, s.cfg.DB.Read(ctx))
}

// CDRsAfter returns the next records of an organisation whose calls ended between two times, at most limit, in the
// order in which they ended. It begins after the record of the call afterID, which ended at after.
func (s *Service) CDRsAfter(ctx context.Context, org string, in EndedFilter, since, until, after db.Time, afterID string, limit int) ([]CDR,
	error) {
	const text = `SELECT ` + callColumns + ` FROM calls WHERE org_id = $1 AND ended_at IS NOT NULL`
	f, err := s.shownCDRs(ctx, org, db.Where(text, org), in, since, until)
	if err != nil {
		return nil, err
	}
	some, err := queryCalls(ctx, s.cfg.DB.Read(ctx), f.Page("ended_at", false, after, afterID, limit-1))
	if err != nil {
		return nil, err
	}
	for i := range some {
		s.setRecordingURL(&some[i])
	}
	return s.records(ctx, org, some)
}
