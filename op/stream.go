package op

import (
	"io"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// JSONStream answers a value from an operation that can also answer something else.
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

// TextStream answers text of a media type.
func TextStream(mediaType, text string) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(h huma.Context) {
		h.SetHeader("Content-Type", mediaType)
		_, _ = io.WriteString(h.BodyWriter(), text)
	}}
}

// FileStream answers content with support for ranges and closes the file afterwards.
func FileStream(file io.Closer, content io.ReadSeeker, name, mediaType string, changed time.Time) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(h huma.Context) {
		defer file.Close()
		r, w := unwrap(h)
		w.Header().Set("Content-Type", mediaType)
		w.Header().Set("Content-Disposition", `inline; filename="`+name+`"`)
		w.Header().Set("Cache-Control", "private, no-store")
		http.ServeContent(w, r, name, changed, content)
	}}
}
