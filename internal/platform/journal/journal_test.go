package journal

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// reopen opens the journal as after a kill, without closing it first.
func reopen(t *testing.T, dir string) (j *Journal, left []string) {
	t.Helper()
	j, found, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	for _, b := range found {
		left = append(left, string(b))
	}
	return j, left
}

func add(t *testing.T, j *Journal, what string) (settle func()) {
	t.Helper()
	settle, err := j.Append([]byte(what))
	if err != nil {
		t.Fatal(err)
	}
	return settle
}

func TestOpen_ReturnsUnsettled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, left := reopen(t, dir)
	if len(left) > 0 {
		t.Fatalf("a new journal has %q", left)
	}
	first, second := add(t, j, "first"), add(t, j, "second")
	second()
	if _, left := reopen(t, dir); len(left) != 2 || left[0] != "first" || left[1] != "second" {
		t.Errorf("found %q, want both: the first is not settled", left)
	}
	first()
	add(t, j, "third")
	again, left := reopen(t, dir)
	if len(left) != 1 || left[0] != "third" {
		t.Errorf("found %q, want the third alone", left)
	}
	if _, err := again.Append([]byte("early")); err != ErrNotCleared {
		t.Errorf("before what was found is kept elsewhere: %v", err)
	}
	if err := again.Clear(); err != nil {
		t.Fatal(err)
	}
	if _, left := reopen(t, dir); len(left) > 0 {
		t.Errorf("a journal that was emptied has %q", left)
	}
}

func TestSettle_EmptiesFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		j, _ := reopen(t, dir)
		add(t, j, "a call")()
		if _, left := reopen(t, dir); len(left) != 1 {
			t.Errorf("found %q: the files are emptied a moment later", left)
		}
		time.Sleep(emptyAfter)
		synctest.Wait()
		if _, left := reopen(t, dir); len(left) > 0 {
			t.Errorf("found %q, which was settled long ago", left)
		}
		if b, err := os.ReadFile(filepath.Join(dir, "journal.0")); err != nil || len(bytes.Trim(b, "\x00")) > 0 {
			t.Errorf("of what is settled %q is left, %v", b, err)
		}
		second := add(t, j, "another")
		if _, left := reopen(t, dir); len(left) != 1 || left[0] != "another" {
			t.Errorf("found %q after the files were emptied", left)
		}
		second()
		if j.Waiting() != 0 {
			t.Errorf("%d wait", j.Waiting())
		}
	})
}

func TestSettle_NoRemainderOfLongEntry(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "journal.0")
	synctest.Test(t, func(t *testing.T) {
		j, _ := reopen(t, dir)
		for _, size := range []int{5000, mappedSize + 1} {
			add(t, j, strings.Repeat("x", size))()
			time.Sleep(emptyAfter)
			synctest.Wait()
			short := add(t, j, "a call")
			b, err := os.ReadFile(path)
			if err != nil || bytes.Contains(b, []byte("x")) || !bytes.Contains(b, []byte("a call")) || len(b) > mappedSize {
				t.Errorf("after %d bytes there are %d: %.100q, %v", size, len(b), b, err)
			}
			if _, left := reopen(t, dir); len(left) != 1 || left[0] != "a call" {
				t.Errorf("found %q", left)
			}
			short()
			time.Sleep(emptyAfter)
			synctest.Wait()
		}
	})
}

// TestAppend_DiskFault truncates a mapped file, which has the effect of a full or broken disk.
func TestAppend_DiskFault(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, _ := reopen(t, dir)
	if j.files[0].mem == nil {
		t.Skip("files are not mapped into memory here")
	}
	if err := os.Truncate(filepath.Join(dir, "journal.0"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Append([]byte("not kept")); err == nil {
		t.Fatal("kept where there is no room")
	}
	add(t, j, "kept")
	if _, left := reopen(t, dir); len(left) != 1 || left[0] != "kept" {
		t.Errorf("found %q", left)
	}
}

func TestOpen_TornEntry(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, _ := reopen(t, dir)
	add(t, j, "whole")
	add(t, j, "torn in the middle")
	path := filepath.Join(dir, "journal.0")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b = bytes.TrimRight(b, "\x00")
	for cut := 1; cut < headerSize+4; cut++ {
		if err := os.WriteFile(path, b[:len(b)-cut], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, left := reopen(t, dir); len(left) != 1 || left[0] != "whole" {
			t.Fatalf("%d bytes short: found %q", cut, left)
		}
	}
	b[len(b)-1] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, left := reopen(t, dir); len(left) != 1 {
		t.Errorf("a changed byte: found %q", left)
	}
}

func TestJournal_AlternatesFiles(t *testing.T) {
	t.Parallel()
	for _, inMemory := range []bool{true, false} {
		t.Run(fmt.Sprintf("mapped %t", inMemory), func(t *testing.T) { takeTurns(t, inMemory) })
	}
}

func takeTurns(t *testing.T, inMemory bool) {
	dir := t.TempDir()
	j, _ := reopen(t, dir)
	if !inMemory {
		j.files[0].mem, j.files[1].mem = nil, nil
	}
	long := strings.Repeat("x", 10_000)
	held := add(t, j, "held")
	for range 150 { // more than one file
		add(t, j, long)()
	}
	if _, left := reopen(t, dir); len(left) != 151 || left[0] != "held" {
		t.Errorf("found %d, the first must be held", len(left))
	}
	held()
	for range 1000 {
		add(t, j, long)()
	}
	last := add(t, j, "last")
	for i := range 2 {
		if info, err := os.Stat(filepath.Join(dir, fmt.Sprintf("journal.%d", i))); err != nil || info.Size() > mappedSize {
			t.Errorf("file %d: %v, %v", i, info.Size(), err)
		}
	}
	if _, left := reopen(t, dir); len(left) != 1 || left[0] != "last" {
		t.Errorf("found %d, want the last", len(left))
	}
	last()
}

func TestAppend_Full(t *testing.T) {
	t.Parallel()
	j, _ := reopen(t, t.TempDir())
	long := bytes.Repeat([]byte("x"), 8<<20)
	var settles []func()
	for {
		settle, err := j.Append(long)
		if err != nil {
			if err != ErrFull {
				t.Fatal(err)
			}
			break
		}
		settles = append(settles, settle)
		if len(settles) > 20 {
			t.Fatal("it takes everything")
		}
	}
	for _, f := range settles {
		f()
	}
	add(t, j, "room again")
}

func TestAppend_Concurrent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, _ := reopen(t, dir)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for k := range 500 {
				settle, err := j.Append(fmt.Appendf(nil, "%d of %d", k, i))
				if err != nil {
					t.Error(err)
					return
				}
				if k != 499 {
					settle()
				}
			}
		})
	}
	all.Wait()
	if j.Waiting() == 0 {
		t.Error("eight are not settled")
	}
	_, left := reopen(t, dir)
	for i := range 8 {
		if want := fmt.Sprintf("499 of %d", i); !strings.Contains(strings.Join(left, ","), want) {
			t.Errorf("%q is not found", want)
		}
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
	if _, err := j.Append([]byte("late")); err != ErrClosed {
		t.Errorf("after the end: %v", err)
	}
}
