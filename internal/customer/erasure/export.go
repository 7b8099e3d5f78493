package erasure

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op"
	"soniq/internal/telephony/call"
)

// Operations of exports. Who may erase a person may export them.

// ExportQueue is the name of the job queue of exports.
const ExportQueue = "person_export"

const (
	exportKind     = "person.export"
	expireKind     = "person.export.expire"
	exportLife     = 72 * time.Hour // of a file
	maxOpenExports = 3              // that wait or run, per organisation
)

func (s *Service) exportOperations() []op.Operation {
	return []op.Operation{
		op.New("memory.exports.create", "POST /memory/exports", access.UsersAdmin, "Have everything that is kept about a number written to a file",
			s.startExport).Status(202).Fails("concurrency_limit", "plan_limit"),
		op.New("memory.exports.get", "GET /memory/exports/{id}", access.UsersAdmin,
			"See how far the export of a number is, and get the address of its file", s.getExport),
		op.NewStream("memory.exports.file", "GET /memory/exports/{id}/file", access.UsersAdmin, "Get the file of the export of a number",
			s.exportFile).AllowSigned().Fails("gone", "invalid_state", "concurrency_limit").
			AnswersFile("application/zip"),
	}
}

// PersonExport is a file with everything that is kept about a number.
type PersonExport struct {
	ID           string   `json:"id" example:"pex_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	Status       string   `json:"status" enum:"queued,running,ready,failed,expired" example:"ready"`
	PhoneHint    string   `json:"phone_hint" doc:"Last digits of the number; the number itself is not kept with the export" example:"…18"`
	Items        int64    `json:"items" doc:"How many calls, messages, notes and other things are written so far"`
	PartsTotal   int      `json:"parts_total" doc:"Kinds of data, then with the sound files too"`
	PartsDone    int      `json:"parts_done"`
	SizeBytes    int64    `json:"size_bytes"`
	URL          *string  `json:"url" doc:"Works for five minutes without a credential; ask again for another"`
	URLExpiresAt *db.Time `json:"url_expires_at"`
	Error        *string  `json:"error"`
	CreatedAt    db.Time  `json:"created_at"`
	StartedAt    db.Time  `json:"started_at" nullable:"true"`
	FinishedAt   db.Time  `json:"finished_at" nullable:"true"`
	ExpiresAt    db.Time  `json:"expires_at" nullable:"true" doc:"When the file is deleted"`

	org      string
	phone    []byte // sealed; nil once the export has ended
	revision int
}

// PersonExportIn is the request of memory.exports.create.
type PersonExportIn struct{ Body PersonExportAsk }

// PersonExportAsk names the number to export.
type PersonExportAsk struct {
	Phone  string `json:"phone" minLength:"1" maxLength:"40" doc:"Number, E.164 or as dialled" example:"+14155550100"`
	Reason string `json:"reason,omitempty" maxLength:"300" doc:"Why, for the record" example:"Asked for by letter"`
}

// PersonExportRef holds the id of an export.
type PersonExportRef struct {
	ID string `path:"id" maxLength:"40" example:"pex_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
}

// PersonExportFileIn holds the input of memory.exports.file.
type PersonExportFileIn struct {
	PersonExportRef
	call.SignedQuery
}

// startExport stores an export and enqueues the job that writes its file.
func (s *Service) startExport(ctx context.Context, in *PersonExportIn) (*op.Out[PersonExport], error) {
	org := access.Org(ctx)
	phone, err := s.externalNumber(ctx, org, in.Body.Phone, op.Invalid(op.Field("phone", "invalid_e164", "not a telephone number")))
	if err != nil {
		return nil, err
	}
	if err := s.cfg.StorageQuota.CheckStorage(ctx, org); err != nil {
		return nil, err
	}
	p, _ := access.From(ctx)
	e := PersonExport{ID: db.NewID("pex"), Status: "queued", PhoneHint: maskedNumber(phone), PartsTotal: len(s.cfg.Stores),
		CreatedAt: db.At(s.cfg.Clock.Now()), org: org}
	if e.phone, err = s.cfg.Seal.Seal([]byte(phone), exportAAD(org, e.ID)); err != nil {
		return nil, fmt.Errorf("seal number: %w", err)
	}
	err = s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		open, err := openExports(ctx, tx, org)
		if err != nil {
			return err
		}
		if open >= maxOpenExports {
			return op.Fail("concurrency_limit", fmt.Sprintf("%d exports are under way; wait for one of them", open))
		}
		if err := insertExport(ctx, tx, e, in.Body.Reason, cmp.Or(p.UserID, p.KeyID)); err != nil {
			return err
		}
		return s.cfg.Jobs.Enqueue(ctx, tx, job.Spec{Org: org, Queue: ExportQueue, Kind: exportKind, Args: jobArgs{e.ID}, MaxAttempts: 5,
			UniqueKey: exportKind + " " + e.ID})
	})
	if err != nil {
		return nil, err
	}
	return &op.Out[PersonExport]{Body: e, Location: op.Prefix + "/memory/exports/" + e.ID}, nil
}

// getExport returns the progress of an export. When it is ready, it returns the signed URL of the file too.
func (s *Service) getExport(ctx context.Context, in *PersonExportRef) (*op.Out[PersonExport], error) {
	e, err := s.findExport(ctx, access.Org(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	if e.Status == "ready" {
		p, _ := access.From(ctx)
		file := s.cfg.Links.Prefix(p.Environment == access.Sandbox) + "/memory/exports/" + e.ID + "/file"
		url, until := s.cfg.Links.Sign(file, p.Holder(), e.ID, call.SignedURLLife)
		e.URL, e.URLExpiresAt = &url, &until
	}
	return op.OK(e)
}

// findExport returns an export. After expires_at its status is expired, even if the file is not deleted yet.
func (s *Service) findExport(ctx context.Context, org, id string) (PersonExport, error) {
	e, err := loadExport(ctx, s.cfg.DB.Read(ctx), org, id)
	if db.IsNone(err) {
		return e, op.NotFound("export")
	}
	if err == nil && e.Status == "ready" && !s.cfg.Clock.Now().Before(e.ExpiresAt.Time) {
		e.Status = "expired"
	}
	return e, err
}

// exportFile sends the file, whole or in the byte ranges that the client requests.
func (s *Service) exportFile(ctx context.Context, in *PersonExportFileIn) (*huma.StreamResponse, error) {
	org, err := s.cfg.Links.AuthorizeScopes(ctx, in.ID, in.SignedQuery, access.UsersAdmin)
	if err != nil {
		return nil, err
	}
	e, err := s.findExport(ctx, org, in.ID)
	switch {
	case err != nil:
		return nil, err
	case e.Status == "expired":
		return nil, op.Fail("gone", "the file was deleted; export the number again")
	case e.Status != "ready":
		return nil, op.State("the export is not ready", e.Status)
	}
	f, _, err := s.cfg.Files.Open(ctx, e.blob())
	if err != nil {
		return nil, fmt.Errorf("open export %s: %w", e.ID, err)
	}
	return op.FileStream(ctx, op.File{Org: e.org, Content: f, Name: e.ID + ".zip", Type: "application/zip", Changed: e.FinishedAt.Time})
}

func (e PersonExport) blob() string { return fmt.Sprintf("%s/exports/%s.zip", e.org, e.ID) }
