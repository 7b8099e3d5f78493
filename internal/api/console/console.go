// Package console serves the web console at /console/. cmd/consolebuild makes its files before the build; a build
// without them serves a page that says so. The console uses the public API alone, with the session of the account page as its credential.
package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

// Prefix is the address below which the console is.
const Prefix = "/console/"

// assets has the page absent.html, and the folder built if the console was built before the program.
//
//go:embed all:assets
var assets embed.FS

// policy is the content security policy of the console (CSP Level 3). There are no inline scripts and styles.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' data: blob:; connect-src 'self'; " +
	"media-src 'self' blob:; worker-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// absentPolicy is the policy of the page absent.html.
const absentPolicy = "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// mediaTypes are the types of the files by the end of their names.
var mediaTypes = map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".woff2": "font/woff2",
	".txt": "text/plain; charset=utf-8"}

// file is one file of the built console.
type file struct {
	content   []byte
	packed    bool // content is packed with gzip
	mediaType string
}

// Console serves the console. It is immutable.
type Console struct {
	index  []byte // nil: the console was not built
	absent []byte
	tag    string // entity tag of index
	files  map[string]file
}

// New returns the console of this build.
func New() (*Console, error) { return load(assets) }

// load reads the files of a build.
func load(from fs.FS) (*Console, error) {
	c := &Console{files: map[string]file{}}
	var err error
	if c.absent, err = fs.ReadFile(from, "assets/absent.html"); err != nil {
		return nil, err
	}
	if c.index, err = fs.ReadFile(from, "assets/built/index.html"); err != nil {
		return c, nil // not built
	}
	sum := sha256.Sum256(c.index)
	c.tag = `"` + hex.EncodeToString(sum[:8]) + `"`
	entries, err := fs.ReadDir(from, "assets/built")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		name, packed := strings.CutSuffix(entry.Name(), ".gz")
		if name == "index.html" {
			continue
		}
		f := file{packed: packed, mediaType: mediaTypes[path.Ext(name)]}
		if f.mediaType == "" {
			return nil, fmt.Errorf("the built console has a file of an unknown kind: %s", name)
		}
		if f.content, err = fs.ReadFile(from, "assets/built/"+entry.Name()); err != nil {
			return nil, err
		}
		c.files[name] = f
	}
	return c, nil
}

// Built reports whether the console is part of this build.
func (c *Console) Built() bool { return c.index != nil }

// Home returns the address of the console; "" if it is not part of this build.
func (c *Console) Home() string {
	if !c.Built() {
		return ""
	}
	return Prefix
}

// Mount registers the addresses of the console.
func (c *Console) Mount(mux *http.ServeMux) {
	mux.HandleFunc("GET /console", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, Prefix, http.StatusSeeOther) })
	mux.HandleFunc("GET "+Prefix, c.page)
	mux.HandleFunc("GET "+Prefix+"assets/{name}", c.asset)
}

// page serves index.html at every address of the console: the script shows the page that the address names.
func (c *Console) page(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	if !c.Built() {
		h.Set("Content-Security-Policy", absentPolicy)
		_, _ = w.Write(c.absent)
		return
	}
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Permissions-Policy", "microphone=(self)")
	h.Set("ETag", c.tag)
	if strings.Contains(r.Header.Get("If-None-Match"), c.tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(c.index)
}

// asset serves a file whose name changes with its content. licences.txt keeps its name and is not kept by browsers.
func (c *Console) asset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	f, ok := c.files[name]
	if !ok {
		http.Error(w, "this build of the console has no such file; load the page again", http.StatusNotFound)
		return
	}
	h := w.Header()
	h.Set("Content-Type", f.mediaType)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	if name == "licences.txt" {
		h.Set("Cache-Control", "no-cache")
	}
	if !f.packed {
		_, _ = w.Write(f.content)
		return
	}
	h.Set("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		_, _ = w.Write(f.content)
		return
	}
	if unpack, err := gzip.NewReader(bytes.NewReader(f.content)); err == nil {
		_, _ = io.Copy(w, unpack)
	}
}
