package call

import (
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"soniq/internal/platform/op"
)

// Records lists call detail records: a page of them, or a table of all.
func (s *Service) Records(ctx context.Context, in *RecordsIn) (*huma.StreamResponse, error) {
	asTable := strings.Contains(in.Accept, "text/csv")
	if asTable {
		if err := in.Columns(everyColumn); err != nil {
			return nil, err
		}
		in.Limit = exportBatch
	}
	first, err := s.records(ctx, in)
	if err != nil {
		return nil, err
	}
	if !asTable {
		return op.PageStream(first.Body)
	}
	return &huma.StreamResponse{Body: func(h huma.Context) {
		h.SetHeader("Content-Type", "text/csv; charset=utf-8")
		h.SetHeader("Content-Disposition", `attachment; filename="cdr.csv"`)
		h.SetHeader("Cache-Control", "private, no-store")
		if err := s.table(ctx, *in, first.Body, h.BodyWriter()); err != nil {
			if ctx.Err() == nil {
				s.log().Error("table of records not finished", "err", err)
			}
			panic(http.ErrAbortHandler) // whoever reads it is to see that it is not whole
		}
	}}, nil
}

// table writes all records that are asked for, a batch at a time.
func (s *Service) table(ctx context.Context, in RecordsIn, page op.Page[CDR], w io.Writer) error {
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
		next, err := s.records(ctx, &in)
		if err != nil {
			return err
		}
		page = next.Body
	}
}
