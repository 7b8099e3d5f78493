package contact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"path/filepath"
	"slices"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op"
)

// Queue is the name of the job queue of imports.
const Queue = "contact"

const (
	importKind = "contact.import"
	maxFile    = 20 << 20 // bytes of an upload
	maxUpload  = maxFile + 64<<10
	maxJSON    = 1 << 20
	maxErrors  = 100 // reported per import
	maxRunning = 10  // queued or running imports per organisation
)

// Import is an import of a file of contacts.
type Import struct {
	ID         string      `json:"id" example:"imp_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	Status     string      `json:"status" enum:"queued,running,completed,failed"`
	Format     string      `json:"format" enum:"csv,vcard"`
	Filename   string      `json:"filename"`
	Duplicates string      `json:"duplicates" enum:"skip,update,create"`
	SizeBytes  int64       `json:"size_bytes"`
	Done       int         `json:"done" doc:"Records dealt with so far"`
	Created    int         `json:"created"`
	Updated    int         `json:"updated"`
	Skipped    int         `json:"skipped" doc:"Records of people who were there already"`
	Failed     int         `json:"failed" doc:"Records that could not be read"`
	Unknown    []string    `json:"unknown_columns" nullable:"false" doc:"Headings of a table that were not understood; their text is in custom, except that of fax numbers"`
	Errors     []LineError `json:"errors" nullable:"false" doc:"The first 100"`
	Error      *string     `json:"error" doc:"Why the whole import failed"`
	CreatedAt  db.Time     `json:"created_at"`
	StartedAt  db.Time     `json:"started_at" nullable:"true"`
	FinishedAt db.Time     `json:"finished_at" nullable:"true"`

	org  string
	blob string
}

// LineError describes a record that could not be read.
type LineError struct {
	Line    int    `json:"line" doc:"Where the record begins, counted from 1"`
	Field   string `json:"field"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Upload is the form of an import request.
type Upload struct {
	File       []byte `json:"file" doc:"CSV with a line of headings, or vCard 2.1 to 4.0; 20 MB at most"`
	Format     string `json:"format,omitempty" enum:"csv,vcard" doc:"Recognised by its content unless given"`
	Duplicates string `json:"duplicates,omitempty" enum:"skip,update,create" default:"skip" doc:"What to do with people who are there already, by a number or an e-mail address"`
}

// Text is the JSON form of an import request, for small files.
type Text struct {
	Content    string `json:"content" maxLength:"1000000" example:"name,phone"`
	Filename   string `json:"filename,omitempty" maxLength:"120"`
	Format     string `json:"format,omitempty" enum:"csv,vcard"`
	Duplicates string `json:"duplicates,omitempty" enum:"skip,update,create" default:"skip"`
}

// ImportIn is the request of contacts.imports.create: a form or a JSON body, by its media type.
type ImportIn struct {
	ContentType string `header:"Content-Type"`
	RawBody     []byte
}

// Import stores a file of contacts and enqueues its import. The answer contains the address of its progress.
func (s *Service) Import(ctx context.Context, in *ImportIn) (*op.Out[Import], error) {
	i := Import{ID: db.NewID("imp"), org: access.Org(ctx), Status: "queued", Errors: []LineError{}, Unknown: []string{},
		CreatedAt: db.At(s.cfg.Clock.Now())}
	file, err := i.parseBody(in)
	if err != nil {
		return nil, err
	}
	waiting, err := openImports(ctx, s.cfg.DB.Read(ctx), i.org)
	if err != nil {
		return nil, err
	}
	if waiting >= maxRunning {
		return nil, op.Fail("concurrency_limit", fmt.Sprintf("%d imports are under way; wait for one of them", waiting))
	}
	i.blob = fmt.Sprintf("%s/imports/%s", i.org, i.ID)
	if i.SizeBytes, err = s.cfg.Files.Put(ctx, i.blob, bytes.NewReader(file)); err != nil {
		return nil, fmt.Errorf("keep the file: %w", err)
	}
	err = s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		if err := insertImport(ctx, tx, i); err != nil {
			return fmt.Errorf("add import: %w", err)
		}
		return s.cfg.Jobs.Enqueue(ctx, tx, job.Spec{Org: i.org, Queue: Queue, Kind: importKind, Args: importArgs{i.ID},
			UniqueKey: importKind + " " + i.ID, OrderKey: importKind + " " + i.org})
	})
	if err != nil {
		return nil, errors.Join(err, s.cfg.Files.Delete(context.WithoutCancel(ctx), i.blob))
	}
	return &op.Out[Import]{Status: 202, Body: i, Location: op.Prefix + "/crm/imports/" + i.ID}, nil
}

type importArgs struct {
	ID string `json:"id"`
}

// parseBody reads the body in either of its two forms.
func (i *Import) parseBody(in *ImportIn) (file []byte, err error) {
	kind, params, err := mime.ParseMediaType(in.ContentType)
	field := "file"
	switch {
	case err == nil && kind == "multipart/form-data":
		file, err = i.parseForm(multipart.NewReader(bytes.NewReader(in.RawBody), params["boundary"]))
	case err == nil && kind == "application/json":
		field = "content"
		file, err = i.parseText(in.RawBody)
	default:
		return nil, op.Fail("unsupported_media_type", "send multipart/form-data with a file, or application/json with its content")
	}
	if err != nil {
		return nil, err
	}
	return file, i.check(file, field)
}

// check checks the file, which is the member field of the request, and the settings of the import.
func (i *Import) check(file []byte, field string) error {
	var wrong []op.Violation
	if len(bytes.TrimSpace(bytes.TrimPrefix(file, []byte(byteOrderMark)))) == 0 {
		wrong = append(wrong, op.Field(field, "required", "the file is empty, or there is none"))
	}
	if i.Duplicates == "" {
		i.Duplicates = "skip"
	}
	if !slices.Contains([]string{"skip", "update", "create"}, i.Duplicates) {
		wrong = append(wrong, op.Field("duplicates", "invalid_value", "must be skip, update or create"))
	}
	if i.Format == "" {
		i.Format = formatOf(file)
	}
	if !slices.Contains([]string{"csv", "vcard"}, i.Format) {
		wrong = append(wrong, op.Field("format", "invalid_value", "must be csv or vcard"))
	}
	if i.Format == "csv" && len(wrong) == 0 {
		if t, err := newTable(bytes.NewReader(file)); err != nil {
			wrong = append(wrong, op.Field(field, "unreadable", err.Error()))
		} else {
			i.Unknown = t.unknown
		}
	}
	if i.Filename = truncateName(normalizeText(i.Filename)); len(wrong) > 0 {
		return op.Invalid(wrong...)
	}
	return nil
}

func formatOf(file []byte) string {
	head := bytes.TrimSpace(bytes.TrimPrefix(file[:min(len(file), 200)], []byte(byteOrderMark)))
	if order, found := utf16Order(head); found { // only its ASCII counts
		if text, err := order.NewDecoder().Bytes(head[:len(head)/2*2]); err == nil {
			head = bytes.TrimSpace(text)
		}
	}
	if bytes.HasPrefix(bytes.ToUpper(head), []byte("BEGIN:VCARD")) {
		return "vcard"
	}
	return "csv"
}

func truncateName(text string) string {
	if r := []rune(text); len(r) > maxName {
		return string(r[:maxName])
	}
	return text
}

// parseForm reads the parts of the form, in any order.
func (i *Import) parseForm(form *multipart.Reader) (file []byte, err error) {
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			return file, nil
		}
		if err != nil {
			return nil, op.Fail("malformed_json", "the form could not be read")
		}
		body, err := io.ReadAll(io.LimitReader(part, maxFile+1))
		switch {
		case err != nil:
			return nil, op.Fail("malformed_json", "the form could not be read")
		case len(body) > maxFile:
			return nil, op.Fail("payload_too_large", "a file may have 20 MB")
		}
		if err := op.CheckPart(part, body, part.FormName() == "file"); err != nil {
			return nil, err
		}
		switch part.FormName() {
		case "file":
			file, i.Filename = body, filepath.Base(part.FileName())
		case "format":
			i.Format = string(body)
		case "duplicates":
			i.Duplicates = string(body)
		default:
			return nil, op.Fail("unknown_field", "the form has a part this operation does not know: "+truncateName(part.FormName()))
		}
	}
}

func (i *Import) parseText(body []byte) ([]byte, error) {
	var t Text
	if len(body) > maxJSON {
		return nil, op.Fail("payload_too_large", "a JSON body may have 1 MB; send larger files as a form")
	}
	if err := op.DecodeStrict(body, &t); err != nil {
		return nil, err
	}
	i.Filename, i.Format, i.Duplicates = t.Filename, t.Format, t.Duplicates
	if formatOf([]byte(t.Content)) == "vcard" || t.Format == "vcard" {
		return []byte(byteOrderMark + t.Content), nil // the text is Unicode, whatever its properties say
	}
	return []byte(t.Content), nil
}

// ImportOne identifies an import.
type ImportOne struct {
	ID string `path:"id" maxLength:"40" example:"imp_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
}

// ShowImport returns the progress of an import.
func (s *Service) ShowImport(ctx context.Context, in *ImportOne) (*op.Out[Import], error) {
	i, err := getImport(ctx, s.cfg.DB.Read(ctx), access.Org(ctx), in.ID)
	if db.IsNone(err) {
		return nil, op.NotFound("import")
	}
	if err != nil {
		return nil, fmt.Errorf("get import: %w", err)
	}
	return op.OK(i)
}

const importColumns = `id, org_id, status, format, filename, duplicates, blob, size_bytes, done, created, updated, skipped, failed, errors,
	unknown_columns, error, created_at, started_at, finished_at`

func getImport(ctx context.Context, q db.Querier, org, id string) (Import, error) {
	var i Import
	var wrong db.JSON[[]LineError]
	var unknown db.JSON[[]string]
	var failure db.Null
	err := q.QueryRow(ctx, `SELECT `+importColumns+` FROM contact_imports WHERE org_id = $1 AND id = $2`, org, id).Scan(&i.ID, &i.org,
		&i.Status, &i.Format,
		&i.Filename, &i.Duplicates, &i.blob, &i.SizeBytes, &i.Done, &i.Created, &i.Updated, &i.Skipped, &i.Failed, &wrong, &unknown,
		&failure, &i.CreatedAt, &i.StartedAt, &i.FinishedAt)
	i.Errors, i.Unknown, i.Error = append([]LineError{}, wrong.V...), append([]string{}, unknown.V...), failure.Ptr()
	return i, err
}

func openImports(ctx context.Context, q db.Querier, org string) (n int, err error) {
	const text = `SELECT count(*) FROM contact_imports WHERE org_id = $1 AND finished_at IS NULL`
	err = q.QueryRow(ctx, text, org).Scan(&n)
	return n, err
}

func insertImport(ctx context.Context, tx db.Querier, i Import) error {
	const q = `INSERT INTO contact_imports (org_id, id, source, status, format, filename, duplicates, blob, size_bytes, done, created,
			updated, skipped, failed, errors, created_at, unknown_columns)
		VALUES ($1, $2, '', $3, $4, $5, $6, $7, $8, 0, 0, 0, 0, 0, $9, $10, $11)`
	_, err := tx.Exec(ctx, q, i.org, i.ID, i.Status, i.Format, i.Filename, i.Duplicates, i.blob, i.SizeBytes, db.AsJSON(i.Errors),
		i.CreatedAt, db.AsJSON(i.Unknown))
	return err
}

// saveProgress writes the progress of an import. It returns false if the stored progress is not was: another process
// has continued the import.
func (i *Import) saveProgress(ctx context.Context, tx db.Querier, was int) (bool, error) {
	const q = `UPDATE contact_imports SET status = $4, done = $5, created = $6, updated = $7, skipped = $8, failed = $9, errors = $10,
			error = $11, started_at = $12, finished_at = $13
		WHERE org_id = $1 AND id = $2 AND done = $3 AND finished_at IS NULL`
	var failure db.Null
	if i.Error != nil {
		failure = db.Null(*i.Error)
	}
	r, err := tx.Exec(ctx, q, i.org, i.ID, was, i.Status, i.Done, i.Created, i.Updated, i.Skipped, i.Failed, db.AsJSON(i.Errors), failure,
		i.StartedAt, i.FinishedAt)
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	return n > 0, err
}

// importTimeout bounds one attempt of an import. The next attempt continues after the committed records.
const importTimeout = 15 * time.Minute
