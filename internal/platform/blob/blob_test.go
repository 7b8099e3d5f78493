package blob_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"soniq/internal/platform/blob"
)

var ctx = context.Background()

const name = "org_1/2026/11/call_1.wav"

func newDir(t *testing.T) (*blob.Dir, string) {
	t.Helper()
	root := filepath.Join(t.TempDir(), "blobs")
	d, err := blob.OpenDir(root, blob.Alone{})
	if err != nil {
		t.Fatal(err)
	}
	return d, root
}

func read(t *testing.T, s blob.Store, name string) string {
	t.Helper()
	f, size, err := s.Open(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil || int64(len(b)) != size {
		t.Fatalf("read %d bytes of %d: %v", len(b), size, err)
	}
	return string(b)
}

func TestDir_RoundTrip(t *testing.T) {
	t.Parallel()
	d, _ := newDir(t)
	var s blob.Store = d
	if n, err := s.Put(ctx, name, strings.NewReader("audio")); err != nil || n != 5 {
		t.Fatal(n, err)
	}
	if got := read(t, s, name); got != "audio" {
		t.Errorf("got %q", got)
	}
	if _, err := s.Put(ctx, name, strings.NewReader("newer audio")); err != nil {
		t.Fatal(err)
	}
	if size, err := s.Stat(ctx, name); size != 11 || err != nil {
		t.Errorf("size %d, %v", size, err)
	}
	for range 2 {
		if err := s.Delete(ctx, name); err != nil {
			t.Errorf("delete: %v", err)
		}
	}
	if _, _, err := s.Open(ctx, name); !errors.Is(err, blob.ErrNone) {
		t.Errorf("open after delete: %v, want ErrNone", err)
	}
	if _, err := s.Stat(ctx, name); !errors.Is(err, blob.ErrNone) {
		t.Errorf("stat after delete: %v, want ErrNone", err)
	}
}

func TestDir_NamesStayInFolder(t *testing.T) {
	t.Parallel()
	d, root := newDir(t)
	outside := filepath.Join(filepath.Dir(root), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"../secret", "org_1/../../secret", "/secret", "org_1//x", "./x", "org_1/.", `org_1\x`, "", "org_1/", ".."} {
		if _, err := d.Put(ctx, bad, strings.NewReader("x")); err == nil {
			t.Errorf("Put(%q) is accepted", bad)
		}
		if f, _, err := d.Open(ctx, bad); err == nil {
			f.Close()
			t.Errorf("Open(%q) is accepted", bad)
		}
		if err := d.Delete(ctx, bad); err == nil {
			t.Errorf("Delete(%q) is accepted", bad)
		}
		if err := d.Import(ctx, bad, outside); err == nil {
			t.Errorf("Adopt(%q) is accepted", bad)
		}
	}
	if b, err := os.ReadFile(outside); err != nil || string(b) != "secret" {
		t.Errorf("the file outside: %q, %v", b, err)
	}
}

// A symbolic link in place of a file, or of a folder, is never followed: not to read, not to write, and not to delete what it leads to.
func TestDir_LinksAreNotFollowed(t *testing.T) {
	t.Parallel()
	d, root := newDir(t)
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret.wav")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Put(ctx, "org_2/own.wav", strings.NewReader("of another")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(root, "org_1"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"org_1/out.wav": secret, "org_1/in.wav": "../org_2/own.wav", "org_1/folder": outside, "org_1/inside": "../org_2"} {
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"org_1/out.wav", "org_1/in.wav", "org_1/folder/secret.wav", "org_1/inside/own.wav"} {
		if f, _, err := d.Open(ctx, name); !errors.Is(err, blob.ErrIrregular) {
			t.Errorf("Open(%q): %v, %v", name, f, err)
		}
		if _, err := d.Stat(ctx, name); !errors.Is(err, blob.ErrIrregular) {
			t.Errorf("Stat(%q): %v", name, err)
		}
		if _, err := d.Path(name); !errors.Is(err, blob.ErrIrregular) {
			t.Errorf("Path(%q): %v", name, err)
		}
		if _, err := d.Put(ctx, name, strings.NewReader("x")); !errors.Is(err, blob.ErrIrregular) {
			t.Errorf("Put(%q): %v", name, err)
		}
		_ = d.Delete(ctx, name)
	}
	if err := d.DeleteAll(ctx, "org_1"); err != nil {
		t.Errorf("DeleteAll: %v", err)
	}
	if b, err := os.ReadFile(secret); err != nil || string(b) != "secret" {
		t.Errorf("the file outside: %q, %v", b, err)
	}
	if got := read(t, d, "org_2/own.wav"); got != "of another" {
		t.Errorf("the file of another organisation: %q", got)
	}
	if _, err := os.Lstat(filepath.Join(root, "org_1")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder with links is left: %v", err)
	}
}

// A folder that is a symbolic link itself is allowed: recordings may be on another disk. A pipe in place of a file is refused without
// waiting.
func TestDir_FolderOnAnotherDiskAndPipes(t *testing.T) {
	t.Parallel()
	_, root := newDir(t)
	link := filepath.Join(t.TempDir(), "recordings")
	if err := os.Symlink(root, link); err != nil {
		t.Fatal(err)
	}
	d, err := blob.OpenDir(link, blob.Alone{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Put(ctx, name, strings.NewReader("audio")); err != nil {
		t.Fatal(err)
	}
	if got := read(t, d, name); got != "audio" {
		t.Errorf("got %q", got)
	}
	if err := syscall.Mkfifo(filepath.Join(root, "pipe.wav"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.Open(ctx, "pipe.wav"); !errors.Is(err, blob.ErrIrregular) {
		t.Errorf("a pipe: %v", err)
	}
}

// failingReader is a reader that fails in the middle, as with a lost connection.
type failingReader struct{ n int }

func (f *failingReader) Read(b []byte) (int, error) {
	if f.n--; f.n < 0 {
		return 0, errors.New("broken off")
	}
	return copy(b, "part"), nil
}

func TestPut_Atomic(t *testing.T) {
	t.Parallel()
	d, root := newDir(t)
	if _, err := d.Put(ctx, name, &failingReader{3}); err == nil {
		t.Fatal("no error")
	}
	if _, err := d.Stat(ctx, name); !errors.Is(err, blob.ErrNone) {
		t.Errorf("half a file is there: %v", err)
	}
	var left []string
	_ = filepath.WalkDir(root, func(p string, e os.DirEntry, _ error) error {
		if !e.IsDir() {
			left = append(left, p)
		}
		return nil
	})
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestImport_MovesFile(t *testing.T) {
	t.Parallel()
	d, root := newDir(t)
	part := filepath.Join(root, "call.part")
	if err := os.WriteFile(part, []byte("audio"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.Import(ctx, name, part); err != nil {
		t.Fatal(err)
	}
	if got := read(t, d, name); got != "audio" {
		t.Errorf("got %q", got)
	}
	path, err := d.Path(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Import(ctx, name, path); err != nil {
		t.Errorf("a file that is in place already: %v", err)
	}
	if _, err := os.Stat(part); err == nil {
		t.Error("the file is still at its old place")
	}
}
