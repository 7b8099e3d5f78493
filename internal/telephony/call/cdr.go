package call

import (
	"context"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/op"
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
		ToNumber: c.ToNumber, NumberID: c.NumberID, FlowID: c.FlowID, FlowVersion: c.internal.FlowVersion, AgentsOffered: []OfferedAgent{}, Contact: c.Contact,
		StartedAt: c.StartedAt, AnsweredAt: c.AnsweredAt, RingSeconds: c.RingSeconds, QueueSeconds: c.QueueSeconds,
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

// RecordsIn holds the filters of ListCDRs.
type RecordsIn struct {
	Filters
	Disposition  string `query:"disposition" maxLength:"120"`
	MissedReason string `query:"missed_reason" maxLength:"40"`
	HangupBy     string `query:"hangup_by" enum:"caller,callee,agent,system,api"`
	Sort         string `query:"sort" enum:"-ended_at,ended_at,-started_at,started_at,-talk_duration_seconds,talk_duration_seconds" default:"-ended_at"`
	Accept       string `header:"Accept" maxLength:"200" doc:"text/csv for a table of all records that match, whatever their number; fields are its columns"`
}

// cdrPage returns a page of call detail records.
func (s *Service) cdrPage(ctx context.Context, in *RecordsIn) (*op.Out[op.Page[CDR]], error) {
	const text = `SELECT ` + callColumns + ` FROM calls WHERE org_id = $1 AND ended_at IS NOT NULL`
	all := func() *db.Filter {
		return db.Where(text, access.Org(ctx)).Equal("disposition", in.Disposition).Equal("missed_reason", in.MissedReason).
			Equal("hangup_by", in.HangupBy)
	}
	page, err := s.page(ctx, in.Filters, all, in.Sort, "ended_at", `SELECT count(*) FROM calls WHERE org_id = $1 AND ended_at IS NOT NULL`)
	if err != nil {
		return nil, err
	}
	records := make([]CDR, len(page.Body.Data))
	for i, c := range page.Body.Data {
		records[i] = c.toCDR()
	}
	if err := s.addQueueDetails(ctx, access.Org(ctx), records); err != nil {
		return nil, err
	}
	out := op.Paged(ctx, in.Paging, records, nil)
	out.Body.NextCursor, out.Body.HasMore, out.Body.Total = page.Body.NextCursor, page.Body.HasMore, page.Body.Total
	return out, nil
}

// RecordIn holds the input of GetCDR.
type RecordIn struct {
	ID string `path:"id" maxLength:"40" doc:"Of the record, or of its call"`
}

// GetCDR returns one call detail record.
func (s *Service) GetCDR(ctx context.Context, in *RecordIn) (*op.Out[CDR], error) {
	c, err := getCDR(ctx, s.DB.Read(ctx), access.Org(ctx), in.ID)
	if db.IsNone(err) {
		return nil, op.NotFound("call detail record")
	}
	if err != nil {
		return nil, err
	}
	s.setRecordingURL(&c)
	one := []CDR{c.toCDR()}
	if err := s.addQueueDetails(ctx, access.Org(ctx), one); err != nil {
		return nil, err
	}
	return op.OK(one[0])
}
