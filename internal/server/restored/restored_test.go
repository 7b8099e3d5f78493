package restored

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"soniq/internal/platform/db"
)

// installation is a data folder with an SQLite database.
type installation struct {
	t    *testing.T
	data string
	log  bytes.Buffer
}

func newInstallation(t *testing.T) *installation {
	return &installation{t: t, data: filepath.Join(t.TempDir(), "data")}
}

// start opens the database as serve does, and closes it again.
func (i *installation) start(as string) State {
	i.t.Helper()
	if err := os.MkdirAll(i.data, 0o700); err != nil {
		i.t.Fatal(err)
	}
	var s State
	i.with(func(d *db.DB, path string) (err error) {
		if _, err := d.Migrate(i.t.Context()); err != nil {
			return err
		}
		s, err = Open(i.t.Context(), d, Config{Data: i.data, Path: path, As: as, Log: slog.New(slog.NewTextHandler(&i.log, nil))})
		return err
	})
	return s
}

func (i *installation) with(do func(d *db.DB, path string) error) {
	i.t.Helper()
	path := filepath.Join(i.data, "soniq.db")
	d, err := db.Open(i.t.Context(), path)
	if err == nil {
		err = errors.Join(do(d, path), d.Close())
	}
	if err != nil {
		i.t.Fatal(err)
	}
}

// copied returns a copy of the folder.
func (i *installation) copied() *installation {
	i.t.Helper()
	to := &installation{t: i.t, data: filepath.Join(i.t.TempDir(), "copy")}
	if out, err := exec.Command("cp", "-a", i.data, to.data).CombinedOutput(); err != nil {
		i.t.Fatalf("cp -a: %v: %s", err, out)
	}
	return to
}

// backup returns a copy by soniq backup.
func (i *installation) backup() *installation {
	i.t.Helper()
	to := &installation{t: i.t, data: i.t.TempDir()}
	i.with(func(d *db.DB, _ string) error {
		return d.Backup(i.t.Context(), filepath.Join(to.data, "soniq.db"), BackupFacts(time.Now()))
	})
	return to
}

func TestOpen_RestartIsNoCopy(t *testing.T) {
	i := newInstallation(t)
	first := i.start("")
	for _, as := range []string{"", Live, ""} {
		s := i.start(as)
		if s.Held() != nil || s.Copied || s.Node != first.Node || s.Notice() != "" {
			t.Errorf("restart with %q: %+v, first %+v", as, s, first)
		}
	}
	if !strings.Contains(i.log.String(), "confirms nothing") {
		t.Errorf("--restored=live without a copy is not mentioned: %s", &i.log)
	}
}

func TestOpen_MovedFolderIsNoCopy(t *testing.T) {
	i := newInstallation(t)
	first := i.start("")
	moved := &installation{t: t, data: i.data + "-elsewhere"}
	if err := os.Rename(i.data, moved.data); err != nil {
		t.Fatal(err)
	}
	if s := moved.start(""); s.Copied || s.Node != first.Node {
		t.Errorf("after mv: %+v, before %+v", s, first)
	}
}

func TestOpen_CopyIsHeldUntilConfirmed(t *testing.T) {
	for name, take := range map[string]func(*installation) *installation{"cp -a": (*installation).copied,
		"backup": (*installation).backup} {
		t.Run(name, func(t *testing.T) {
			i := newInstallation(t)
			i.t = t
			original := i.start("").Node.Name
			c := take(i)
			s := c.start("")
			if !errors.Is(s.Held(), ErrHeld) || !s.Copied || s.Since().IsZero() || !strings.Contains(s.Notice(), "--restored=live") {
				t.Fatalf("the copy: %+v", s)
			}
			if s.Node.Name == original || name == "cp -a" && s.Node.Former != original {
				t.Errorf("node of the copy: %+v, of the original: %s", s.Node, original)
			}
			if (name == "backup") == s.Taken.IsZero() {
				t.Errorf("taken at %v", s.Taken)
			}
			again := c.start("")
			if again.Held() == nil || again.Node != s.Node || !again.Since().Equal(s.Since()) {
				t.Errorf("second start: %+v, first %+v", again, s)
			}
			live := c.start(Live)
			if live.Held() != nil || !live.Copied || live.Node != s.Node {
				t.Errorf("confirmed: %+v", live)
			}
			if after := c.start(""); after.Held() != nil || after.Copied || after.Node != s.Node {
				t.Errorf("after it was confirmed: %+v", after)
			}
			if o := i.start(""); o.Held() != nil || o.Node.Name != original {
				t.Errorf("the original: %+v", o)
			}
		})
	}
}

// A copy of a confirmed copy is one again.
func TestOpen_CopyOfCopy(t *testing.T) {
	i := newInstallation(t)
	i.start("")
	c := i.copied()
	c.start(Live)
	if s := c.copied().start(""); s.Held() == nil {
		t.Errorf("%+v", s)
	}
}

// The operator declares a copy that is not recognised, such as a snapshot of a machine.
func TestOpen_DeclaredCopy(t *testing.T) {
	i := newInstallation(t)
	first := i.start("")
	s := i.start(Copy)
	if s.Held() == nil || s.Node.Name == first.Node.Name || s.Node.Former != first.Node.Name {
		t.Errorf("declared: %+v", s)
	}
	if again := i.start(Copy); again.Held() == nil || again.Node != s.Node {
		t.Errorf("again: %+v", again)
	}
}

func TestLook_WritesNothing(t *testing.T) {
	i := newInstallation(t)
	i.start("")
	c := i.copied()
	for range 2 {
		c.with(func(d *db.DB, path string) error {
			notice, err := Look(t.Context(), d, path)
			if !strings.Contains(notice, "--restored=live") {
				t.Errorf("notice %q", notice)
			}
			return err
		})
	}
	if s := c.start(""); s.Held() == nil {
		t.Error("the copy is not held after Look")
	}
}

func TestFile_CopiedTo(t *testing.T) {
	was := file{Inode: 7, Born: 100, Path: "/gone/soniq.db", Machine: "a"}
	for name, c := range map[string]struct {
		change func(f *file)
		copied bool
	}{
		"nothing":                           {func(*file) {}, false},
		"moved":                             {func(f *file) { f.Path = "/new/soniq.db" }, false},
		"disk at another machine":           {func(f *file) { f.Machine = "b" }, false},
		"container with other inodes":       {func(f *file) { f.Inode = 8; f.Machine = "b" }, false},
		"copied to the same path":           {func(f *file) { f.Born = 101 }, true},
		"copied to the same inode":          {func(f *file) { f.Born = 101; f.Machine = "b" }, true},
		"no birth, other inode":             {func(f *file) { f.Born = 0; f.Inode = 8 }, false},
		"no birth, other inode and path":    {func(f *file) { f.Born = 0; f.Inode = 8; f.Path = "/new/soniq.db" }, true},
		"no birth, other inode and machine": {func(f *file) { f.Born = 0; f.Inode = 8; f.Machine = "b" }, true},
		"no birth, other machine":           {func(f *file) { f.Born = 0; f.Machine = "b" }, false},
	} {
		now := was
		c.change(&now)
		if got := was.copiedTo(now); (got != "") != c.copied {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// The node of a folder that was copied beside a database of PostgreSQL is another one. What the former node holds is not for it to close.
func TestNodeOf_CopiedFolderOnTheSameDatabase(t *testing.T) {
	at := place{Server: &db.Address{Database: 1, System: "2"}}
	i := newInstallation(t)
	if err := os.MkdirAll(i.data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(i.data, "node"), []byte("node_old\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if n, err := nodeOf(i.data, at, false); err != nil || n != (Node{Name: "node_old"}) {
			t.Errorf("node of an earlier version: %+v %v", n, err)
		}
	}
	c := i.copied()
	n, err := nodeOf(c.data, at, false)
	if err != nil || n.Name == "node_old" || n.Former != "" {
		t.Errorf("copied folder: %+v %v", n, err)
	}
	elsewhere := place{Server: &db.Address{Database: 3, System: "2"}}
	if n, err = nodeOf(i.data, elsewhere, false); err != nil || n.Name == "node_old" || n.Former != "node_old" {
		t.Errorf("restored database: %+v %v", n, err)
	}
}
