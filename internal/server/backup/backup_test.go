package backup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/server/datadir"
	"soniq/internal/server/installation"
)

// fixture is a data folder with a database, and the folder of its backup.
type fixture struct {
	t    *testing.T
	d    *db.DB
	data string
	to   string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	h := &fixture{t, dbtest.SQLite(t), t.TempDir(), filepath.Join(t.TempDir(), "monday")}
	if _, err := installation.Open(t.Context(), h.d, h.data); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"node": "a", "tls-cert.pem": "certificate", "tls-key.pem": "key", "alive": "", "lock": "",
		"journal.0": "x", "recordings/org_1/a.wav": "audio", "recordings/org_1/b.wav.part": "half",
		"recordings/org_1/call_1.wav.part": "begun"} {
		h.put(name, text)
	}
	return h
}

func (h *fixture) put(name, text string) {
	h.t.Helper()
	path := filepath.Join(h.data, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

func (h *fixture) write() Summary {
	h.t.Helper()
	s, err := Write(h.t.Context(), h.d, h.data, h.to)
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

// files returns the names of all files below a folder.
func files(t *testing.T, folder string) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(folder, path)
			all = append(all, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}

// A backup has the certificates that soniq made, and shares no file with the original.
//
// https://github.com/wp-media/backwpup/issues/118, https://github.com/zenml-io/zenml/issues/5174
func TestWrite_CompleteAndIndependent(t *testing.T) {
	h := newFixture(t)
	elsewhere := filepath.Join(t.TempDir(), "disk")
	if err := os.Rename(filepath.Join(h.data, "recordings"), elsewhere); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, filepath.Join(h.data, "recordings")); err != nil {
		t.Fatal(err)
	}
	if s := h.write(); s.Recordings != 2 || s.NoDatabase != nil {
		t.Errorf("%+v", s)
	}
	want := "backup.json master.key node recordings/org_1/a.wav recordings/org_1/call_1.wav.part soniq.db tls-cert.pem tls-key.pem"
	if got := files(t, h.to); got != want {
		t.Errorf("the backup has %s, want %s", got, want)
	}
	for _, name := range strings.Fields(want) {
		a, err := os.Stat(filepath.Join(h.to, name))
		if b, miss := os.Stat(filepath.Join(h.data, name)); miss == nil && (err != nil || os.SameFile(a, b)) {
			t.Errorf("%s is the file of the original, %v", name, err)
		}
	}
	if r, err := Verify(t.Context(), h.to); err != nil || !r.Database || r.Files != 7 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := Write(t.Context(), h.d, h.data, h.to); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("a second backup to the same folder: %v", err)
	}
}

// A recording that ends while the folder is read is in the backup under its final name.
func TestCopyRecording_EndsMeanwhile(t *testing.T) {
	h := newFixture(t)
	h.put("recordings/org_1/call_2.wav", "whole")
	if err := os.MkdirAll(filepath.Join(h.to, "recordings/org_1"), 0o700); err != nil {
		t.Fatal(err)
	}
	var m manifest
	for _, want := range []bool{true, false} { // the folder may have been read with both names
		const name = "recordings/org_1/call_2.wav.part"
		if got, err := m.copyRecording(t.Context(), filepath.Join(h.data, name), h.to, name); got != want || err != nil {
			t.Errorf("copied: %t, %v, want %t", got, err, want)
		}
	}
	if got := files(t, h.to); got != "recordings/org_1/call_2.wav" {
		t.Errorf("the backup has %s", got)
	}
}

// A backup that fails leaves nothing under its name. What a killed process leaves is refused as a data folder, and replaced by the next
// backup.
func TestWrite_HalfBackups(t *testing.T) {
	h := newFixture(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Write(ended, h.d, h.data, h.to); !errors.Is(err, context.Canceled) {
		t.Errorf("a backup that was interrupted: %v", err)
	}
	if left, _ := os.ReadDir(filepath.Dir(h.to)); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	lock, err := datadir.BeginPartial(h.to + ".partial")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Write(t.Context(), h.d, h.data, h.to); err == nil || !strings.Contains(err.Error(), "another backup") {
		t.Errorf("beside another backup: %v", err)
	}
	if err := lock.Close(); err != nil { // as the end of its process does
		t.Fatal(err)
	}
	if _, err := datadir.Lock(h.to + ".partial"); !errors.Is(err, datadir.ErrIncomplete) {
		t.Errorf("the half backup as a data folder: %v", err)
	}
	if _, err := Verify(t.Context(), h.to+".partial"); !errors.Is(err, datadir.ErrIncomplete) {
		t.Errorf("the half backup verified: %v", err)
	}
	h.write()
	if left, _ := os.ReadDir(filepath.Dir(h.to)); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
	for _, to := range []string{h.data + "/copy", h.data + "/recordings/copy"} {
		if _, err := Write(t.Context(), h.d, h.data, to); err == nil || !strings.Contains(err.Error(), "in the data folder") {
			t.Errorf("into %s: %v", to, err)
		}
	}
}

// Verify finds every change of a backup.
func TestVerify_Damage(t *testing.T) {
	for name, damage := range map[string]func(folder string) error{
		"tls-key.pem is missing":     func(f string) error { return os.Remove(f + "/tls-key.pem") },
		"a.wav was changed":          func(f string) error { return os.WriteFile(f+"/recordings/org_1/a.wav", []byte("audiO"), 0o600) },
		"soniq.db was changed":       func(f string) error { return os.Truncate(f+"/soniq.db", 8192) },
		"has no backup.json":         func(f string) error { return os.Remove(f + "/backup.json") },
		"does not say when":          func(f string) error { return os.WriteFile(f+"/backup.json", []byte("{}"), 0o600) },
		"read backup.json":           func(f string) error { return os.Truncate(f+"/backup.json", 20) },
		"is no backup, one that was": func(f string) error { return os.RemoveAll(f) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newFixture(t)
			h.write()
			if err := damage(h.to); err != nil {
				t.Fatal(err)
			}
			if _, err := Verify(t.Context(), h.to); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("got %v", err)
			}
		})
	}
}
