package cdr

import (
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"soniq/internal/platform/op"
	"soniq/internal/telephony/call"
)

// ListCDRs returns a page of call detail records as JSON, or all matching records as CSV if the client accepts
// text/csv.
func (s *Service) ListCDRs(ctx context.Context, in *RecordsIn) (*huma.StreamResponse, error) {
	asTable := strings.Contains(in.Accept, "text/csv")
	if asTable {
		if err := in.Columns(allColumns); err != nil {
			return nil, err
		}
		in.Limit = exportBatch
	}
	first, err := s.cfg.Records.CDRPage(ctx, in.filter(), in.Sort)
	if err != nil {
		return nil, err
	}
	if !asTable {
		return op.PageStream(first)
	}
	return &huma.StreamResponse{Body: func(h huma.Context) {
		h.SetHeader("Content-Type", "text/csv; charset=utf-8")
		h.SetHeader("Content-Disposition", `attachment; filename="cdr.csv"`)
		h.SetHeader("Cache-Control", "private, no-store")
		if err := s.writeCSV(ctx, *in, first, h.BodyWriter()); err != nil {
			if ctx.Err() == nil {
				s.cfg.Log.Error("CSV of call detail records aborted", "err", err)
			}
			panic(http.ErrAbortHandler) // aborts the response, so that the client sees that the table is incomplete
		}
	}}, nil
}

// writeCSV writes all matching records, exportBatch at a time. page is the first batch.
func (s *Service) writeCSV(ctx context.Context, in RecordsIn, page op.Page[call.CDR], w io.Writer) error {
	rows, err := newRowWriter(w, "csv", in.Fields)
	if err != nil {
		return err
	}
	for {
		for _, r := range page.Data {
			if err := rows.write(r); err != nil {
				return err
			}
		}
		if err := rows.flush(); err != nil || !page.HasMore {
			return err
		}
		in.Cursor = *page.NextCursor
		var err error
		if page, err = s.cfg.Records.CDRPage(ctx, in.filter(), in.Sort); err != nil {
			return err
		}
	}
}
