package console

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// packed returns a text packed with gzip.
func packed(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// built returns a server with a console of a few files.
func built(t *testing.T) *http.ServeMux {
	t.Helper()
	c, err := load(fstest.MapFS{
		"assets/absent.html":             {Data: []byte("no console")},
		"assets/built/index.html":        {Data: []byte("<script>")},
		"assets/built/console-ABC.js.gz": {Data: packed(t, "run()")},
		"assets/built/inter-ABC.woff2":   {Data: []byte("font")},
		"assets/built/licences.txt.gz":   {Data: packed(t, "MIT")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.Home() != "/console/" {
		t.Errorf("the home of a built console is %q", c.Home())
	}
	mux := http.NewServeMux()
	c.Mount(mux)
	return mux
}

// get sends a request with headers, which are name and value by turns.
func get(mux *http.ServeMux, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	return w
}

func TestPage_PolicyAndTag(t *testing.T) {
	t.Parallel()
	mux := built(t)
	for _, path := range []string{"/console/", "/console/calls", "/console/calls/call_1/timeline"} {
		w := get(mux, path)
		h := w.Header()
		if w.Code != 200 || w.Body.String() != "<script>" || h.Get("Cache-Control") != "no-cache" || h.Get("ETag") == "" {
			t.Errorf("%s: %d %v", path, w.Code, h)
		}
		policy := h.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'self';", "style-src 'self';", "require-trusted-types-for 'script'", "frame-ancestors 'none'"} {
			if !strings.Contains(policy, part) {
				t.Errorf("the policy lacks %s: %s", part, policy)
			}
		}
		if strings.Contains(policy, "unsafe") || h.Get("Cross-Origin-Opener-Policy") != "same-origin" {
			t.Errorf("%s: %v", path, h)
		}
		if again := get(mux, path, "If-None-Match", h.Get("ETag")); again.Code != 304 || again.Body.Len() > 0 {
			t.Errorf("the same page again: %d", again.Code)
		}
	}
	if w := get(mux, "/console"); w.Code != 303 || w.Header().Get("Location") != "/console/" {
		t.Errorf("without the slash: %d %v", w.Code, w.Header())
	}
}

func TestAsset_PackedAndKept(t *testing.T) {
	t.Parallel()
	mux := built(t)
	w := get(mux, "/console/assets/console-ABC.js", "Accept-Encoding", "gzip")
	if w.Code != 200 || w.Header().Get("Content-Encoding") != "gzip" || w.Header().Get("Cache-Control") != "public, max-age=31536000, immutable" ||
		!strings.HasPrefix(w.Header().Get("Content-Type"), "text/javascript") {
		t.Errorf("the script: %d %v", w.Code, w.Header())
	}
	if w = get(mux, "/console/assets/console-ABC.js"); w.Body.String() != "run()" || w.Header().Get("Content-Encoding") != "" {
		t.Errorf("without gzip: %q %v", w.Body, w.Header())
	}
	if w = get(mux, "/console/assets/inter-ABC.woff2"); w.Body.String() != "font" || w.Header().Get("Content-Type") != "font/woff2" {
		t.Errorf("the font: %q %v", w.Body, w.Header())
	}
	if w = get(mux, "/console/assets/licences.txt"); w.Body.String() != "MIT" || w.Header().Get("Cache-Control") != "no-cache" {
		t.Errorf("the licences: %q %v", w.Body, w.Header())
	}
	for _, path := range []string{"/console/assets/none.js", "/console/assets/index.html", "/console/assets/console-ABC.js.gz"} {
		if w = get(mux, path); w.Code != 404 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

func TestPage_WithoutBuildSaysHowToMakeIt(t *testing.T) {
	t.Parallel()
	absent, err := assets.ReadFile("assets/absent.html")
	if err != nil {
		t.Fatal(err)
	}
	c, err := load(fstest.MapFS{"assets/absent.html": {Data: absent}})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	c.Mount(mux)
	w := get(mux, "/console/calls")
	if w.Code != 200 || !strings.Contains(w.Body.String(), "make build") || c.Home() != "" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// The languages have the same keys, and the same values in their texts.
func TestWords_LanguagesAreComplete(t *testing.T) {
	t.Parallel()
	source := catalogue(t, "en")
	files, err := filepath.Glob("app/words/*.json")
	if err != nil || len(files) < 2 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		language := strings.TrimSuffix(filepath.Base(file), ".json")
		other := catalogue(t, language)
		for key, text := range source {
			if other[key] == "" {
				t.Errorf("%s.json lacks %s", language, key)
			}
			for _, value := range values(text) {
				if !strings.Contains(other[key], "{"+value) {
					t.Errorf("%s.json: %s lacks the value %s: %s", language, key, value, other[key])
				}
			}
		}
		for key := range other {
			if source[key] == "" {
				t.Errorf("%s.json has %s, which en.json lacks", language, key)
			}
		}
	}
}

func catalogue(t *testing.T, language string) (all map[string]string) {
	t.Helper()
	text, err := os.ReadFile("app/words/" + language + ".json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatalf("%s: %v", language, err)
	}
	return all
}

// values returns the names of the values that a text contains.
func values(text string) (all []string) {
	for _, part := range strings.Split(text, "{")[1:] {
		name := strings.TrimRight(strings.FieldsFunc(part, func(r rune) bool { return r == '}' || r == ',' })[0], " ")
		if name == strings.ToLower(name) && !strings.ContainsAny(name, " #") {
			all = append(all, name)
		}
	}
	return all
}
