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

// page.js is the search over the description, which the viewer does not have.
//
//go:embed docs/page.js
var pageScript []byte

const docsPage = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>soniq API reference</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">
<link rel="stylesheet" href="/docs/elements.css"><script src="/docs/elements.js"></script><script defer src="/docs/page.js"></script>
<style>html,body{height:100%;margin:0;font-family:system-ui,sans-serif}body{display:flex;flex-direction:column}
elements-api{display:block;flex:1;min-height:0}
header{display:flex;gap:1.2rem;align-items:center;padding:.5rem 1rem;border-bottom:1px solid #ddd;position:relative;font-size:14px;flex-wrap:wrap}
header a{color:#333;text-decoration:none}header a:hover{text-decoration:underline}
#find{flex:1;max-width:28rem;padding:.4rem .7rem;border:1px solid #bbb;border-radius:6px;font-size:14px}
#found{position:absolute;top:100%;left:1rem;right:1rem;max-width:46rem;z-index:50;background:#fff;border:1px solid #ccc;border-radius:6px;
box-shadow:0 6px 24px #0003;max-height:70vh;overflow:auto}
#found a{display:block;padding:.5rem .8rem}#found a[aria-selected=true],#found a:hover{background:#eef4ff}#found p{padding:0 .8rem}
#found b{display:inline-block;min-width:4.5rem;font-size:11px;color:#2a66c8}#found code{color:#777;font-size:12px}</style></head>
<body><header><a href="/docs"><strong>soniq</strong></a>
<input id="find" type="search" placeholder="Search operations, events, schemas, errors ( / )" aria-label="Search" autocomplete="off" disabled>
<a href="/errors">Error codes</a><a href="/openapi.json">OpenAPI</a><a href="/postman.json">Postman</a><a href="/llms.txt">llms.txt</a>
<div id="found" role="listbox" hidden></div></header>
<elements-api apiDescriptionUrl="/openapi.json" router="hash" layout="sidebar" tryItCredentialsPolicy="omit"></elements-api>
<noscript>The reference needs JavaScript; the description itself is at <a href="/openapi.json">/openapi.json</a>.</noscript></body></html>
`

func (s *Server) docs() {
	s.router.HandleFunc("GET /docs", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, docsPage)
	})
	s.router.HandleFunc("GET /docs/page.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
		_, _ = w.Write(pageScript)
	})
	s.router.HandleFunc("GET /docs/elements.js", asset("docs/elements.js.gz", "text/javascript; charset=utf-8"))
	s.router.HandleFunc("GET /docs/elements.css", asset("docs/elements.css.gz", "text/css; charset=utf-8"))
}

// asset serves a compressed file, decompressed for clients without gzip.
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
