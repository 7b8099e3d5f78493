// Package cdr serves call detail records: as JSON, as CSV, and as files that a job writes.
package cdr

import (
	"context"
	"log/slog"

	"soniq/internal/platform/access"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op"
	"soniq/internal/telephony/call"
)

// Records are the call detail records. The service of package call implements it.
type Records interface {
	// CDRPage returns a page of the records of the credential's organisation.
	CDRPage(ctx context.Context, in call.EndedFilter, sort string) (op.Page[call.CDR], error)
	// FindCDR returns the record of a call by its own id or the call's, or db.ErrNone.
	FindCDR(ctx context.Context, org, id string) (call.CDR, error)
	// CountCDRs counts the records of calls that ended between two times.
	CountCDRs(ctx context.Context, org string, in call.EndedFilter, since, until db.Time) (int, error)
	// CDRsAfter returns the next records of calls that ended between two times, in the order in which they ended.
	CDRsAfter(ctx context.Context, org string, in call.EndedFilter, since, until, after db.Time, afterID string, limit int) ([]call.CDR,
		error)
}

// StorageQuota returns an error if the storage quota of the organisation is used up.
type StorageQuota interface {
	CheckStorage(ctx context.Context, org string) error
}

// Config has the dependencies of a Service.
type Config struct {
	DB           *db.DB
	Jobs         *job.Queue
	Files        call.Files
	Records      Records
	StorageQuota StorageQuota // nil: no limit
	Links        call.Links
	Clock        clock.Clock  // nil: the machine's
	Log          *slog.Logger // nil: no logging
	// MayDelete is asked before the file of an expired export is deleted. Its error is that of the job.
	MayDelete clock.DeletionGate
}

// Service serves call detail records, as JSON, CSV and files. It is safe for concurrent use.
type Service struct{ cfg Config }

// New returns a Service.
func New(c Config) *Service {
	c.Clock, c.Links.Clock = clock.OrSystem(c.Clock), clock.OrSystem(c.Links.Clock)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Service{c}
}

// Operations lists the API operations on call detail records.
func (s *Service) Operations() []op.Operation {
	return append([]op.Operation{
		op.NewStream("cdr.list", "GET /cdr", access.CallsRead, "List call detail records", s.ListCDRs).
			Answers(200, "application/json", op.Page[call.CDR]{}).Answers(200, "text/csv",
			nil).Fails("invalid_cursor").Tool("get_call_history"),
		op.New("cdr.get", "GET /cdr/{id}", access.CallsRead, "Get one call detail record", s.GetCDR),
	}, s.exportOperations()...)
}

// RecordsIn holds the filters of ListCDRs.
type RecordsIn struct {
	call.Filters
	Disposition  string `query:"disposition" maxLength:"120"`
	MissedReason string `query:"missed_reason" maxLength:"40"`
	HangupBy     string `query:"hangup_by" enum:"caller,callee,agent,system,api"`
	Sort         string `query:"sort" enum:"-ended_at,ended_at,-started_at,started_at,-talk_duration_seconds,talk_duration_seconds" default:"-ended_at"`
	Accept       string `header:"Accept" maxLength:"200" doc:"text/csv for a table of all records that match, whatever their number; fields are its columns"`
}

func (in *RecordsIn) filter() call.EndedFilter {
	return call.EndedFilter{Filters: in.Filters, Disposition: in.Disposition, MissedReason: in.MissedReason, HangupBy: in.HangupBy}
}

// RecordIn holds the input of GetCDR.
type RecordIn struct {
	ID string `path:"id" maxLength:"40" doc:"Of the record, or of its call"`
}

// GetCDR returns one call detail record.
func (s *Service) GetCDR(ctx context.Context, in *RecordIn) (*op.Out[call.CDR], error) {
	r, err := s.cfg.Records.FindCDR(ctx, access.Org(ctx), in.ID)
	if db.IsNone(err) {
		return nil, op.NotFound("call detail record")
	}
	if err != nil {
		return nil, err
	}
	return op.OK(r)
}
