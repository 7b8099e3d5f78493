package erasure

import (
	"archive/zip"
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"soniq/internal/platform/blob"
	"soniq/internal/platform/db"
	"soniq/internal/platform/personal"
	"soniq/internal/telephony/call"
)

// maxArchiveBytes limits the content of a file. Sound files beyond it are left out.
const maxArchiveBytes = 8 << 30

// errTooLarge is the error of an export whose data alone, without sound, exceeds maxArchiveBytes.
var errTooLarge = errors.New("more is kept about the number than a file may have (8 GiB); erase what is no longer needed, then export again")

// notIncluded lists what an export never contains.
var notIncluded = []omission{
	{"memory_vectors", "numbers that are computed from memory_items for the search"},
	{"settings", "numbers in forwarding, flows, queues and rules belong to the configuration; an erasure leaves them too"},
	{"log of the process", "it is not stored by soniq"},
	{"backups", "they are files of the operator"},
	{"connected systems", "their own records stay there; crm_refs names them"},
	{"recordings without sound", "audio that was deleted, is withheld by redaction, or is not finished"},
}

// omission is something that is not in the archive.
type omission struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// archive writes the ZIP file of an export. It implements personal.Writer. Items of several kinds may come mixed. So each kind is
// collected in a temporary file without a name, which the system removes with the process.
type archive struct {
	zip     *zip.Writer
	folder  string // of temporary files
	now     time.Time
	onItem  func() error // after each item
	kinds   map[string]*kindFile
	sounds  []personal.Sound
	seen    map[[sha256.Size224]byte]struct{} // items that are written
	omitted []omission
	entries []entry
	items   int64
	bytes   int64
}

// kindFile collects the items of a kind.
type kindFile struct {
	file  *os.File
	out   *bufio.Writer
	items int
}

// entry is a file of the archive, as the index lists it.
type entry struct {
	File  string `json:"file"`
	Items int    `json:"items,omitempty"`
	Bytes int64  `json:"bytes"`
}

// Item implements personal.Writer.
func (a *archive) Item(kind string, item any) error {
	value, err := json.Marshal(item)
	if err != nil {
		return fmt.Errorf("export %s: %w", kind, err)
	}
	hash := sha256.Sum224(append([]byte(kind+" "), value...))
	if _, found := a.seen[hash]; found {
		return nil
	}
	if a.bytes += int64(len(value)); a.bytes > maxArchiveBytes {
		return errTooLarge
	}
	k, err := a.kind(kind)
	if err != nil {
		return err
	}
	if k.items > 0 {
		_, _ = k.out.WriteString(",\n") // the next write returns the error
	}
	if _, err := k.out.Write(value); err != nil {
		return err
	}
	if a.seen == nil {
		a.seen = map[[sha256.Size224]byte]struct{}{}
	}
	a.seen[hash] = struct{}{}
	k.items++
	a.items++
	return a.onItem()
}

// Sound implements personal.Writer.
func (a *archive) Sound(f personal.Sound) {
	if !slices.Contains(a.sounds, f) {
		a.sounds = append(a.sounds, f)
	}
}

func (a *archive) omit(what, why string) { a.omitted = append(a.omitted, omission{what, why}) }

// kind returns the file of a kind. Its name is removed at once, so that a crash leaves nothing.
func (a *archive) kind(name string) (*kindFile, error) {
	if k := a.kinds[name]; k != nil {
		return k, nil
	}
	f, err := os.CreateTemp(a.folder, ".export-*")
	if err != nil {
		return nil, err
	}
	if a.kinds == nil {
		a.kinds = map[string]*kindFile{}
	}
	k := &kindFile{file: f, out: bufio.NewWriter(f)}
	a.kinds[name] = k
	return k, os.Remove(f.Name())
}

func (a *archive) close() {
	for _, k := range a.kinds {
		_ = k.file.Close()
	}
}

// writeKinds writes a JSON file for each kind.
func (a *archive) writeKinds() error {
	for _, name := range slices.Sorted(maps.Keys(a.kinds)) {
		k := a.kinds[name]
		if err := k.out.Flush(); err != nil {
			return err
		}
		if _, err := k.file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		list := io.MultiReader(strings.NewReader("[\n"), k.file, strings.NewReader("\n]\n"))
		if err := a.write(name+".json", zip.Deflate, k.items, list); err != nil {
			return err
		}
	}
	return nil
}

// writeSound writes a sound file. One that is missing, or for which there is no room, is listed in the index.
func (a *archive) writeSound(ctx context.Context, files call.Files, s personal.Sound) error {
	f, size, err := files.Open(ctx, s.Blob)
	if errors.Is(err, blob.ErrNone) {
		a.omit(s.ID, "the server that wrote this file does not have the sound")
		return nil
	}
	if err != nil {
		return fmt.Errorf("open sound of %s: %w", s.ID, err)
	}
	defer f.Close()
	if a.bytes+size > maxArchiveBytes {
		a.omit(s.ID, "no room: a file has at most 8 GiB; get the sound by itself")
		return nil
	}
	a.bytes += size
	return a.write("sound/"+s.ID+".wav", zip.Store, 0, f)
}

// write adds a file to the archive.
func (a *archive) write(name string, method uint16, items int, from io.Reader) error {
	w, err := a.zip.CreateHeader(&zip.FileHeader{Name: name, Method: method, Modified: a.now})
	if err != nil {
		return err
	}
	n, err := io.Copy(w, from)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	a.entries = append(a.entries, entry{File: name, Items: items, Bytes: n})
	return nil
}

// finish writes the index and the end of the archive.
func (a *archive) finish(id string, spellings []string) error {
	index := struct {
		ExportID    string     `json:"export_id"`
		CreatedAt   db.Time    `json:"created_at"`
		Numbers     []string   `json:"numbers"` // the spellings that were searched
		Items       int64      `json:"items"`
		Files       []entry    `json:"files"`
		NotIncluded []omission `json:"not_included"`
	}{id, db.At(a.now), spellings, a.items, append([]entry{}, a.entries...), slices.Concat(notIncluded, a.omitted)}
	text, err := json.MarshalIndent(index, "", "  ")
	if err != nil {
		return err
	}
	if err := a.write("index.json", zip.Deflate, 0, strings.NewReader(string(text)+"\n")); err != nil {
		return err
	}
	return a.zip.Close()
}
