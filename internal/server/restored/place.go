package restored

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"soniq/internal/platform/db"
)

// place says where a database is. It is stored in the database itself: in a copy it names the place of the original.
type place struct {
	File   *file       `json:"file,omitempty"`   // SQLite
	Server *db.Address `json:"server,omitempty"` // PostgreSQL
	Backup time.Time   `json:"backup,omitzero"`  // of a copy by soniq backup, which is nowhere yet
}

// placeOf returns the place of an open database.
func placeOf(ctx context.Context, d *db.DB, path string) (p place, err error) {
	if d.Name() == "postgres" {
		p.Server, err = d.Address(ctx)
		return p, err
	}
	p.File, err = fileAt(path)
	return p, err
}

// parsePlace returns a stored place; nil if there is none.
func parsePlace(text string) (*place, error) {
	if text == "" {
		return nil, nil
	}
	var p place
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return nil, fmt.Errorf("read the place of the database: %w", err)
	}
	return &p, nil
}

func (p place) String() string {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // numbers and texts only
	}
	return string(text)
}

// copiedTo returns why a database at another place is a copy of the one that was stored; "" if it is the same one.
func (p place) copiedTo(now place) string {
	switch {
	case !p.Backup.IsZero():
		return "soniq backup made it at " + p.Backup.UTC().Format(time.RFC3339)
	case p.File != nil && now.File != nil:
		return p.File.copiedTo(*now.File)
	case p.Server != nil && now.Server != nil && p.Server.Differs(*now.Server):
		return fmt.Sprintf("its database was %s and is %s", p.Server, now.Server)
	}
	return ""
}

// file identifies a file. A copy by cp, rsync, tar or a backup program has another moment of birth, and usually another inode. Both
// remain when the file is renamed, and when its disk is mounted again or at another machine.
type file struct {
	Inode   uint64 `json:"inode"`
	Born    int64  `json:"born,omitempty"` // nanoseconds since 1970; 0 if the file system does not tell it
	Path    string `json:"path"`
	Machine string `json:"machine,omitempty"` // /etc/machine-id
}

// fileAt returns the identity of a file.
func fileAt(path string) (*file, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("identify %s: %w", path, err)
	}
	f := &file{Born: born(path), Path: path}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		f.Inode = s.Ino
	}
	if whole, err := filepath.Abs(path); err == nil {
		f.Path = whole
	}
	if id, err := os.ReadFile("/etc/machine-id"); err == nil {
		f.Machine = strings.TrimSpace(string(id))
	}
	return f, nil
}

// copiedTo returns why another file is a copy of this one; "" if it is the same one.
func (f file) copiedTo(now file) string {
	moved := f.Path != now.Path
	switch {
	case f.Born != 0 && now.Born != 0 && f.Born != now.Born:
	case (f.Born == 0 || now.Born == 0) && f.Inode != now.Inode && (moved || f.Machine != now.Machine):
	case moved && f.isStillThere(now):
	default:
		return ""
	}
	if moved {
		return fmt.Sprintf("%s was %s before", now.Path, f.Path)
	}
	return now.Path + " is another file than before"
}

// isStillThere reports whether the file exists at its earlier path beside the other one, as with a snapshot of a disk.
func (f file) isStillThere(now file) bool {
	before, err := fileAt(f.Path)
	if err != nil || before.Inode != f.Inode || before.Born != f.Born {
		return false
	}
	one, err := os.Stat(f.Path)
	if err != nil {
		return false
	}
	other, err := os.Stat(now.Path)
	return err == nil && !os.SameFile(one, other)
}
