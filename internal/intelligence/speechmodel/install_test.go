package speechmodel

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// packed returns an archive in the format of npm.
func packed(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: "package/" + name, Typeflag: tar.TypeReg, Mode: 0o600,
			Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func hash(b []byte) string {
	sum := sha512.Sum512(b)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// newRegistry returns an installation from a fake registry with two packages, one of them scoped, and the served
// files by path.
func newRegistry(t *testing.T) (Install, map[string][]byte) {
	t.Helper()
	script := `const llama_vocab_base64 = "` + base64.StdEncoding.EncodeToString([]byte("<unk>\n<0x41>\n▁good\nday")) + `";`
	library, model := packed(t, map[string]string{"lib.so": "library", "other": "not wanted"}), packed(t, map[string]string{"dist/model/a.onnx": "model", "words.js": script})
	served := map[string][]byte{"/lib/-/lib-1.0.0.tgz": library, "/@of/model/-/model-2.0.0.tgz": model}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, ok := served[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(b)
	}))
	t.Cleanup(s.Close)
	return Install{Folder: filepath.Join(t.TempDir(), "to"), Registry: s.URL + "/", Client: s.Client(), Progress: t.Logf,
		packages: []npmPackage{
			{name: "lib", version: "1.0.0", sha512: hash(library), files: []file{{from: "lib.so", to: "lib.so"}}},
			{name: "@of/model", version: "2.0.0", sha512: hash(model), files: []file{{from: "dist/model/a.onnx", to: "encoder.onnx"}, {from: "words.js", to: "tokens.txt", convert: tokens}}},
		}}, served
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestInstall_CompleteAndRepeatable(t *testing.T) {
	in, served := newRegistry(t)
	dir, err := in.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if dir != filepath.Join(in.Folder, Model) || content(t, filepath.Join(dir, "lib.so")) != "library" || content(t, filepath.Join(dir, "encoder.onnx")) != "model" {
		t.Errorf("%s holds something else", dir)
	}
	left, _ := filepath.Glob(filepath.Join(in.Folder, "*", "*"))
	if hidden, _ := filepath.Glob(filepath.Join(in.Folder, ".*")); len(left) != 3 || len(hidden) > 0 {
		t.Errorf("left behind: %v %v", left, hidden)
	}
	clear(served)
	if again, err := in.Run(context.Background()); err != nil || again != dir {
		t.Errorf("a second time something was fetched: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "encoder.onnx")); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Run(context.Background()); err == nil {
		t.Error("a folder with a file missing passes as complete")
	}
}

func TestInstall_WrongHashRefused(t *testing.T) {
	in, served := newRegistry(t)
	served["/@of/model/-/model-2.0.0.tgz"] = packed(t, map[string]string{"dist/model/a.onnx": "of somebody else", "words.js": ""})
	_, err := in.Run(context.Background())
	if err == nil || !strings.Contains(err.Error(), "SHA-512") || !strings.Contains(err.Error(), "@of/model 2.0.0") {
		t.Errorf("refused with %v", err)
	}
	if left, _ := os.ReadDir(in.Folder); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestInstall_MissingPackageOrFile(t *testing.T) {
	in, served := newRegistry(t)
	delete(served, "/lib/-/lib-1.0.0.tgz")
	if _, err := in.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("a package that is not there: %v", err)
	}
	in, _ = newRegistry(t)
	in.packages[0].files[0].from = "elsewhere.so"
	if _, err := in.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "1 of its files are missing") {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestInstall_FromPackageFolder(t *testing.T) {
	in, served := newRegistry(t)
	in.PackageFolder, in.Registry = t.TempDir(), "http://127.0.0.1:1"
	if _, err := in.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "npm pack lib@1.0.0") {
		t.Errorf("an empty folder: %v", err)
	}
	for path, name := range map[string]string{"/lib/-/lib-1.0.0.tgz": "lib-1.0.0.tgz", "/@of/model/-/model-2.0.0.tgz": "of-model-2.0.0.tgz"} {
		if err := os.WriteFile(filepath.Join(in.PackageFolder, name), served[path], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := in.Run(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestTokens_Bytes(t *testing.T) {
	in, _ := newRegistry(t)
	dir, err := in.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(content(t, filepath.Join(dir, "tokens.txt"))), "\n")
	if len(lines) != vocabularySize {
		t.Fatalf("%d tokens", len(lines))
	}
	for i, want := range []string{"<unk>", "A", " good", "day", "<4>"} {
		token, number, _ := strings.Cut(lines[i], "\t")
		if b, err := base64.StdEncoding.DecodeString(token); err != nil || string(b) != want || number != string(rune('0'+i)) {
			t.Errorf("token %s is %q, not %q", number, b, want)
		}
	}
	if _, err := tokens([]byte("let nothing = 1")); err == nil {
		t.Error("a script without vocabulary passes")
	}
}
