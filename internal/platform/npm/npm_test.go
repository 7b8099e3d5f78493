package npm_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"soniq/internal/platform/npm"
)

// pack returns a package with files.
func pack(t *testing.T, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, name := range files {
		h := &tar.Header{Name: "package/" + name, Typeflag: tar.TypeReg, Mode: 0o600, Size: int64(len(name))}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestFetch_AddressAndStatus(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/@of/model/-/model-2.0.0.tgz" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte("packed"))
	}))
	t.Cleanup(s.Close)
	p := npm.Package{Name: "@of/model", Version: "2.0.0"}
	if name := p.FileName(); name != "of-model-2.0.0.tgz" {
		t.Errorf("file %s", name)
	}
	content, size, err := p.Fetch(t.Context(), s.Client(), s.URL+"/")
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	if b, err := io.ReadAll(content); err != nil || string(b) != "packed" || size != 6 {
		t.Errorf("fetched %q of %d bytes, %v", b, size, err)
	}
	p.Version = "3.0.0"
	if _, _, err := p.Fetch(t.Context(), s.Client(), s.URL); err == nil || !strings.Contains(err.Error(), "model-3.0.0.tgz answered 404") {
		t.Errorf("a version that does not exist: %v", err)
	}
}

func TestExtract_WantedFilesOnly(t *testing.T) {
	t.Parallel()
	packed := pack(t, "readme", "dist/a", "dist/b")
	var got []string
	write := func(name string, content io.Reader) error {
		b, err := io.ReadAll(content)
		got = append(got, name+"="+string(b))
		return err
	}
	if err := npm.Extract(bytes.NewReader(packed), []string{"dist/b", "dist/a"}, write); err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(got, " "); all != "dist/a=dist/a dist/b=dist/b" {
		t.Errorf("extracted %s", all)
	}
	if err := npm.Extract(bytes.NewReader(packed), []string{"readme", "none"}, write); err == nil || err.Error() != "1 of its files are missing" {
		t.Errorf("a file that is not there: %v", err)
	}
	full := errors.New("full")
	err := npm.Extract(bytes.NewReader(packed), []string{"dist/a"}, func(string, io.Reader) error { return full })
	if !errors.Is(err, full) || !strings.Contains(err.Error(), "dist/a") {
		t.Errorf("a file that cannot be written: %v", err)
	}
}

func TestExtractAll_StaysInFolder(t *testing.T) {
	t.Parallel()
	var got []string
	write := func(name string, _ io.Reader) error {
		got = append(got, name)
		return nil
	}
	if err := npm.ExtractAll(bytes.NewReader(pack(t, "readme", "dist/a")), write); err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(got, " "); all != "readme dist/a" {
		t.Errorf("extracted %s", all)
	}
	for _, name := range []string{"../a", "dist/../../a", "/a"} {
		if err := npm.ExtractAll(bytes.NewReader(pack(t, name)), write); err == nil || !strings.Contains(err.Error(), "leads out of it") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// A package is fetched once. A damaged copy in the cache is fetched again, and a package with another hash is refused.
func TestCached_FetchedOnceAndVerified(t *testing.T) {
	packed, asked := pack(t, "readme"), 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		_, _ = w.Write(packed)
	}))
	t.Cleanup(s.Close)
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("HOME", cache)
	t.Setenv("npm_config_registry", s.URL)
	p := npm.Package{Name: "@of/model", Version: "2.0.0"}
	sum := sha512.Sum512(packed)
	integrity := "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
	for range 2 {
		if got, err := p.Cached(t.Context(), integrity, 1<<20, func() {}); err != nil || !bytes.Equal(got, packed) {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
	}
	if asked != 1 {
		t.Errorf("the registry was asked %d times", asked)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "soniq", p.FileName()), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Cached(t.Context(), integrity, 1<<20, func() {}); err != nil || asked != 2 {
		t.Errorf("after damage the registry was asked %d times: %v", asked, err)
	}
	if _, err := p.Cached(t.Context(), "sha512-other", 1<<20, func() {}); err == nil || !strings.Contains(err.Error(), "not the same package") {
		t.Errorf("another hash: %v", err)
	}
}
