package rest

import (
	"bytes"
	"compress/gzip"
	"embed"
	"io"
	"net/http"
	"strings"
)

// The viewer is @stoplight/elements 9.0.25 (Apache-2.0), kept compressed; nothing is fetched from elsewhere.
//
//go:embed docs/elements.js.gz docs/elements.css.gz
var viewer embed.FS

const docsPage = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>soniq API reference</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="/docs/elements.css"><script src="/docs/elements.js"></script>
<style>html,body{height:100%;margin:0}elements-api{display:block;height:100vh}</style></head>
<body><elements-api apiDescriptionUrl="/openapi.json" router="hash" layout="sidebar" hideSchemas="false"></elements-api>
<noscript>The reference needs JavaScript; the description itself is at <a href="/openapi.json">/openapi.json</a>.</noscript></body></html>
`

func (s *Server) docs() {
	s.router.HandleFunc("GET /docs", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, docsPage)
	})
	s.router.HandleFunc("GET /docs/elements.js", asset("docs/elements.js.gz", "text/javascript; charset=utf-8"))
	s.router.HandleFunc("GET /docs/elements.css", asset("docs/elements.css.gz", "text/css; charset=utf-8"))
}

// asset serves a compressed file as it is, or unpacked to the few clients that cannot unpack it.
func asset(name, mediaType string) http.HandlerFunc {
	packed, err := viewer.ReadFile(name)
	return func(w http.ResponseWriter, r *http.Request) {
		if err != nil {
			http.Error(w, "asset is missing from this build", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", mediaType)
		w.Header().Set("Cache-Control", "public, max-age=3600")
		w.Header().Set("Vary", "Accept-Encoding")
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(packed)
			return
		}
		unpack, err := gzip.NewReader(bytes.NewReader(packed))
		if err == nil {
			_, _ = io.Copy(w, unpack)
		}
	}
}
