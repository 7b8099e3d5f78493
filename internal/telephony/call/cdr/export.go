package cdr

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op"
	"soniq/internal/telephony/call"
)

// JobQueue names the job queue of exports.
const JobQueue = "export"

const (
	exportKind       = "cdr.export"
	expireKind       = "cdr.export.expire"
	exportLife       = 7 * 24 * time.Hour // of a file
	maxOpenExports   = 10                 // that wait or run, per organisation
	maxExportColumns = 100
)

func (s *Service) exportOperations() []op.Operation {
	r := access.CallsRead
	return []op.Operation{
		op.New("cdr.exports.create", "POST /cdr/exports", r, "Have call detail records written to a file", s.StartExport).Status(202).
			Fails("concurrency_limit", "plan_limit"),
		op.New("cdr.exports.get", "GET /cdr/exports/{id}", r, "See how far an export is, and get the address of its file", s.GetExport),
		op.NewStream("cdr.exports.file", "GET /cdr/exports/{id}/file", r, "Get the file of an export",
			s.ExportFile).AllowSigned().Fails("gone", "invalid_state", "concurrency_limit").
			AnswersFile("text/csv", "application/jsonl"),
	}
}

// Export is a file of call detail records.
type Export struct {
	ID           string   `json:"id" example:"exp_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	Status       string   `json:"status" enum:"queued,running,ready,failed,expired"`
	Format       string   `json:"format" enum:"csv,jsonl"`
	Since        db.Time  `json:"since"`
	Until        db.Time  `json:"until"`
	Filters      Narrow   `json:"filters"`
	Columns      []string `json:"columns" nullable:"false" doc:"Empty: all"`
	RecordsTotal int64    `json:"records_total" doc:"0 until it is counted"`
	RecordsDone  int64    `json:"records_done"`
	SizeBytes    int64    `json:"size_bytes"`
	URL          *string  `json:"url" doc:"Works for five minutes without a credential; ask again for another"`
	URLExpiresAt *db.Time `json:"url_expires_at"`
	Error        *string  `json:"error"`
	CreatedAt    db.Time  `json:"created_at"`
	StartedAt    db.Time  `json:"started_at" nullable:"true"`
	FinishedAt   db.Time  `json:"finished_at" nullable:"true"`
	ExpiresAt    db.Time  `json:"expires_at" nullable:"true" doc:"When the file is deleted"`

	org      string
	user     string // who asked for it: the file has the records that the user sees; empty: all
	revision int64
}

// Narrow holds the filters of an export, which are those of the list of records.
type Narrow struct {
	Status        []string `json:"status,omitempty" maxItems:"10" enum:"completed,missed,no_answer,busy,failed,canceled"`
	Direction     string   `json:"direction,omitempty" enum:"inbound,outbound,internal"`
	Phone         string   `json:"phone,omitempty" maxLength:"40"`
	FromNumber    string   `json:"from_number,omitempty" maxLength:"40"`
	ToNumber      string   `json:"to_number,omitempty" maxLength:"40"`
	AgentID       string   `json:"agent_id,omitempty" maxLength:"40"`
	QueueID       string   `json:"queue_id,omitempty" maxLength:"40"`
	NumberID      string   `json:"number_id,omitempty" maxLength:"40"`
	FlowID        string   `json:"flow_id,omitempty" maxLength:"40"`
	ContactID     string   `json:"contact_id,omitempty" maxLength:"40"`
	HasRecording  *bool    `json:"has_recording,omitempty"`
	HasTranscript *bool    `json:"has_transcript,omitempty"`
	Sentiment     string   `json:"sentiment,omitempty" enum:"positive,neutral,negative,mixed"`
	Tag           []string `json:"tag,omitempty" maxItems:"20"`
	MinTalk       int      `json:"min_talk_seconds,omitempty" minimum:"0"`
	Q             string   `json:"q,omitempty" maxLength:"200"`
	Disposition   string   `json:"disposition,omitempty" maxLength:"120"`
	MissedReason  string   `json:"missed_reason,omitempty" maxLength:"40"`
	HangupBy      string   `json:"hangup_by,omitempty" enum:"caller,callee,agent,system,api"`
}

// filter converts the filters to those of the list of records.
func (n Narrow) filter() call.EndedFilter {
	f := call.Filters{Status: n.Status, Direction: n.Direction, Phone: n.Phone, FromNumber: n.FromNumber, ToNumber: n.ToNumber,
		AgentID: n.AgentID,
		QueueID: n.QueueID, NumberID: n.NumberID, FlowID: n.FlowID, ContactID: n.ContactID, HasRecording: yesNo(n.HasRecording),
		HasTranscript: yesNo(n.HasTranscript), Sentiment: n.Sentiment, Tag: n.Tag, MinTalk: n.MinTalk, Q: n.Q}
	return call.EndedFilter{Filters: f, Disposition: n.Disposition, MissedReason: n.MissedReason, HangupBy: n.HangupBy}
}

func yesNo(b *bool) string {
	if b == nil {
		return ""
	}
	return strconv.FormatBool(*b)
}

// ExportIn holds the input of StartExport.
type ExportIn struct{ Body ExportAsk }

// ExportAsk selects the records to export, and the format. A record is selected if its call ended at or after since
// and before until.
type ExportAsk struct {
	Since   string   `json:"since" maxLength:"40" doc:"RFC 3339, or a date in the organisation's time zone" example:"2026-01-01"`
	Until   string   `json:"until" maxLength:"40" doc:"RFC 3339, or a date; what ends after the request is left out" example:"2026-02-01"`
	Format  string   `json:"format" enum:"csv,jsonl"`
	Filters Narrow   `json:"filters,omitempty"`
	Columns []string `json:"columns,omitempty" doc:"Members of the record in this order, such as call_id, agent.name, quality.mos; all unless given"`
}

// storedExportRequest is the part of a request that is stored with its export, as JSON.
type storedExportRequest struct {
	Format       string
	Since, Until db.Time
	Filters      Narrow
	Columns      []string
}

// StartExport stores an export and enqueues the job that writes its file.
func (s *Service) StartExport(ctx context.Context, in *ExportIn) (*op.Out[Export], error) {
	e, err := s.newExport(ctx, in.Body)
	if err != nil {
		return nil, err
	}
	if s.cfg.StorageQuota != nil {
		if err := s.cfg.StorageQuota.CheckStorage(ctx, e.org); err != nil {
			return nil, err
		}
	}
	err = s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		var open int
		const q = `SELECT count(*) FROM cdr_exports WHERE org_id = $1 AND status IN ('queued', 'running')`
		if err := tx.QueryRow(ctx, q, e.org).Scan(&open); err != nil {
			return err
		}
		if open >= maxOpenExports {
			return op.Fail("concurrency_limit", fmt.Sprintf("%d exports are under way; wait for one of them", open))
		}
		if err := insertExport(ctx, tx, e); err != nil {
			return fmt.Errorf("write export: %w", err)
		}
		return s.cfg.Jobs.Enqueue(ctx, tx, job.Spec{Org: e.org, Queue: JobQueue, Kind: exportKind, Args: exportJobArgs{e.ID},
			MaxAttempts: 5, UniqueKey: exportKind + " " + e.ID})
	})
	if err != nil {
		return nil, err
	}
	return &op.Out[Export]{Body: e, Location: op.Prefix + "/cdr/exports/" + e.ID}, nil
}

// newExport builds the export of a request, or returns every violation at once.
func (s *Service) newExport(ctx context.Context, b ExportAsk) (Export, error) {
	now := db.At(s.cfg.Clock.Now())
	who, _ := access.From(ctx)
	e := Export{ID: db.NewID("exp"), org: who.OrgID, user: who.UserID, Status: "queued", Format: b.Format, Filters: b.Filters,
		Columns: append([]string{}, b.Columns...), CreatedAt: now}
	var wrong []op.Violation
	for _, end := range []struct {
		field, text string
		at          *db.Time
	}{{"since", b.Since, &e.Since}, {"until", b.Until, &e.Until}} {
		at, _, err := op.Span{Since: end.text}.In(ctx).Times()
		switch *end.at = at; {
		case end.text == "":
			wrong = append(wrong, op.Field(end.field, "required", "must be a time or a date"))
		case err != nil:
			wrong = append(wrong, op.Field(end.field, "invalid_time", "must be RFC 3339 such as 2026-01-31T09:30:00Z, or YYYY-MM-DD"))
		}
	}
	if len(wrong) == 0 && !e.Until.After(e.Since.Time) {
		wrong = append(wrong, op.Field("until", "out_of_range", "must lie after since"))
	}
	if e.Until.After(now.Time) {
		e.Until = now
	}
	if len(b.Columns) > maxExportColumns {
		wrong = append(wrong, op.Field("columns", "too_many", "at most 100"))
	}
	for i, c := range b.Columns {
		if !slices.Contains(allColumns, c) {
			wrong = append(wrong, op.Field(fmt.Sprintf("columns.%d", i), "invalid_value", "no member of a call detail record"))
			break
		}
	}
	if len(wrong) > 0 {
		return e, op.Invalid(wrong...)
	}
	return e, nil
}

// ExportRef holds the id of an export.
type ExportRef struct {
	ID string `path:"id" maxLength:"40" example:"exp_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
}

// GetExport returns the progress of an export. When it is ready, it returns the signed URL of the file too.
func (s *Service) GetExport(ctx context.Context, in *ExportRef) (*op.Out[Export], error) {
	e, err := s.findExport(ctx, access.Org(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	if e.Status == "ready" {
		p, _ := access.From(ctx)
		file := s.cfg.Links.Prefix(p.Environment == access.Sandbox) + "/cdr/exports/" + e.ID + "/file"
		url, until := s.cfg.Links.Sign(file, p.Holder(), e.ID, call.SignedURLLife)
		e.URL, e.URLExpiresAt = &url, &until
	}
	return op.OK(e)
}

// findExport returns an export. After expires_at its status is expired, even if the file is not deleted yet.
func (s *Service) findExport(ctx context.Context, org, id string) (Export, error) {
	e, err := getExport(ctx, s.cfg.DB.Read(ctx), org, id)
	if db.IsNone(err) {
		return e, op.NotFound("export")
	}
	if err == nil && e.Status == "ready" && !s.cfg.Clock.Now().Before(e.ExpiresAt.Time) {
		e.Status = "expired"
	}
	return e, err
}

// FileIn holds the input of ExportFile.
type FileIn struct {
	ExportRef
	call.SignedQuery
}

// ExportFile sends the file, whole or in the byte ranges that the client requests.
func (s *Service) ExportFile(ctx context.Context, in *FileIn) (*huma.StreamResponse, error) {
	org, err := s.cfg.Links.Authorize(ctx, in.ID, in.SignedQuery)
	if err != nil {
		return nil, err
	}
	e, err := s.findExport(ctx, org, in.ID)
	switch {
	case err != nil:
		return nil, err
	case e.Status == "expired":
		return nil, op.Fail("gone", "the file was deleted; export the records again")
	case e.Status != "ready":
		return nil, op.State("the export is not ready", e.Status)
	}
	f, _, err := s.cfg.Files.Open(ctx, e.blob())
	if err != nil {
		return nil, fmt.Errorf("open export %s: %w", e.ID, err)
	}
	kind := map[string]string{"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl"}[e.Format]
	return op.FileStream(ctx, op.File{Org: e.org, Content: f, Name: e.ID + "." + e.Format, Type: kind, Changed: e.FinishedAt.Time})
}

func (e Export) blob() string { return fmt.Sprintf("%s/exports/%s.%s", e.org, e.ID, e.Format) }
