package rest

import (
	"bytes"
	"compress/gzip"
	"embed"
	"io"
	"io/fs"
	"net/http"
	"strings"
)

// docsFiles has the script of the page, and the viewer @stoplight/elements (Apache-2.0) if scripts/viewer has fetched it before the build.
// Browsers fetch nothing from elsewhere.
//
//go:embed docs
var docsFiles embed.FS

const docsPage = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>soniq API reference</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">
<link rel="stylesheet" href="/docs/elements.css"><script src="/docs/elements.js"></script><script defer src="/docs/page.js"></script>
<link rel="stylesheet" href="/docs/reference.css"></head>
<body><header><a href="/docs"><strong>soniq</strong></a>
<input id="find" type="search" placeholder="Search operations, events, schemas, errors ( / )" aria-label="Search" autocomplete="off" disabled>
<a href="/errors">Error codes</a><a href="/openapi.json">OpenAPI</a><a href="/postman.json">Postman</a><a href="/llms.txt">llms.txt</a>
<div id="found" role="listbox" hidden></div></header>
VIEWER
<noscript>The reference needs JavaScript; the description itself is at <a href="/openapi.json">/openapi.json</a>.</noscript></body></html>
`

const (
	viewerElement = `<elements-api apiDescriptionUrl="/openapi.json" router="hash" layout="sidebar" tryItCredentialsPolicy="omit"></elements-api>`
	viewerMissing = `<p class="missing">This build has no viewer of the API reference. Run <code>make build</code>, which fetches it. The description is at
<a href="/openapi.json">/openapi.json</a>, and as text at <a href="/llms.txt">/llms.txt</a>.</p>`
)

// docsPageFor returns the page, with the viewer or with a sentence that it is missing.
func docsPageFor(files fs.FS) string {
	if _, err := fs.Stat(files, "docs/viewer/elements.js.gz"); err != nil {
		page := strings.ReplaceAll(docsPage, `<link rel="stylesheet" href="/docs/elements.css"><script src="/docs/elements.js"></script>`,
			"")
		return strings.Replace(page, "VIEWER", viewerMissing, 1)
	}
	return strings.Replace(docsPage, "VIEWER", viewerElement, 1)
}

func (s *Server) docs() {
	page := docsPageFor(docsFiles)
	s.router.HandleFunc("GET /docs", func(w http.ResponseWriter, _ *http.Request) {
		writePage(w, docsPolicy)
		_, _ = io.WriteString(w, page)
	})
	s.router.HandleFunc("GET /docs/page.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
		script, _ := docsFiles.ReadFile("docs/page.js") // embedded from the tree
		_, _ = w.Write(script)
	})
	s.router.HandleFunc("GET /docs/reference.css", stylesheet("docs/reference.css"))
	s.router.HandleFunc("GET /docs/page.css", stylesheet("docs/page.css"))
	s.router.HandleFunc("GET /docs/elements.js", asset("docs/viewer/elements.js.gz", "text/javascript; charset=utf-8"))
	s.router.HandleFunc("GET /docs/elements.css", asset("docs/viewer/elements.css.gz", "text/css; charset=utf-8"))
}

// asset serves a compressed file, decompressed for clients without gzip.
func asset(name, mediaType string) http.HandlerFunc {
	packed, err := docsFiles.ReadFile(name)
	return func(w http.ResponseWriter, r *http.Request) {
		if err != nil {
			http.Error(w, "asset is missing from this build", http.StatusNotFound)
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
