package npm_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
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
