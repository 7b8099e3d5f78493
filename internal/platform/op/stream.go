package op

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// JSONStream responds with a JSON value, for operations with several media types.
func JSONStream(v any) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(h huma.Context) {
		h.SetHeader("Content-Type", "application/json")
		b, err := encode(v)
		if err != nil {
			h.SetStatus(http.StatusInternalServerError)
			return
		}
		_, _ = h.BodyWriter().Write(append(b, '\n'))
	}}
}

// PageStream responds with a page, for operations with several media types.
func PageStream[T any](p Page[T]) (*huma.StreamResponse, error) {
	if wrong := p.unknownFields(); len(wrong) > 0 {
		return nil, wrongQuery(wrong...)
	}
	return JSONStream(p), nil
}

// Columns refuses entries of fields that are not columns of a table.
func (p Paging) Columns(known []string) error {
	var wrong []Violation
	for _, f := range p.Fields {
		if !slices.Contains(known, f) {
			wrong = append(wrong, Field("fields", "unknown_member", f+" is no column of this table"))
		}
	}
	if len(wrong) > 0 {
		return wrongQuery(wrong...)
	}
	return nil
}

// TextStream responds with text of a media type.
func TextStream(mediaType, text string) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(h huma.Context) {
		h.SetHeader("Content-Type", mediaType)
		_, _ = io.WriteString(h.BodyWriter(), text)
	}}
}

// A File is what FileStream sends.
type File struct {
	Org     string // whose file it is
	Content io.ReadSeekCloser
	Name    string
	Type    string // media type
	Changed time.Time
}

// FileStream responds with a file and supports byte ranges (RFC 9110 §14). It closes the file. It waits for the turn of the download.
func FileStream(ctx context.Context, f File) (*huma.StreamResponse, error) {
	leave, refused := enterDownload(ctx, f.Org)
	if refused != nil {
		return nil, errors.Join(refused, f.Content.Close())
	}
	return &huma.StreamResponse{Body: func(h huma.Context) {
		defer leave()
		defer f.Content.Close()
		r, w := unwrap(h)
		if unit, _, _ := strings.Cut(r.Header.Get("Range"), "="); unit != "bytes" {
			r.Header.Del("Range") // an unknown unit is ignored (RFC 9110 §14.2)
		}
		r.Header.Del("If-Match") // files have no versions, so these conditions are ignored
		r.Header.Del("If-Unmodified-Since")
		w = &rangeWriter{ResponseWriter: w, request: r.WithContext(h.Context())}
		w.Header().Set("Content-Type", f.Type)
		w.Header().Set("Content-Disposition", `inline; filename="`+f.Name+`"`)
		w.Header().Set("Cache-Control", "private, no-store")
		http.ServeContent(w, r, f.Name, f.Changed, f.Content)
	}}, nil
}

// rangeWriter responds to an unsatisfiable range with a problem.
type rangeWriter struct {
	http.ResponseWriter
	request *http.Request
	refused bool
}

// WriteHeader writes the problem instead of the standard library's text.
func (w *rangeWriter) WriteHeader(status int) {
	if w.refused = status == http.StatusRequestedRangeNotSatisfiable; !w.refused {
		w.ResponseWriter.WriteHeader(status)
		return
	}
	w.Header().Del("Content-Length")
	w.Header().Del("Content-Disposition")
	Write(w.ResponseWriter, w.request, Fail("invalid_range", "the recording has no such bytes; Content-Range tells its size"))
}

// Write drops the standard library's text after a problem.
func (w *rangeWriter) Write(b []byte) (int, error) {
	if w.refused {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}

// Pieces of a download, and the time that a client has to read one. A client that reads nothing loses its place.
const (
	downloadPiece   = 1 << 20
	downloadTimeout = 2 * time.Minute
)

// ReadFrom allows sendfile(2).
func (w *rangeWriter) ReadFrom(r io.Reader) (total int64, err error) {
	f, ok := w.ResponseWriter.(io.ReaderFrom)
	whole, limited := r.(*io.LimitedReader)
	if !ok || !limited || w.refused {
		return io.Copy(struct{ io.Writer }{w}, r)
	}
	connection := http.NewResponseController(w.ResponseWriter)
	defer connection.SetWriteDeadline(time.Time{})
	for whole.N > 0 {
		_ = connection.SetWriteDeadline(time.Now().Add(downloadTimeout))       // not supported by the writers of tests
		piece := &io.LimitedReader{R: whole.R, N: min(whole.N, downloadPiece)} // sendfile accepts one level of limits
		n, err := f.ReadFrom(piece)
		total, whole.N = total+n, whole.N-n
		if err != nil || n == 0 {
			return total, err
		}
	}
	return total, nil
}
