package seal_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"soniq/internal/platform/seal"
)

func open(t *testing.T, path string) *seal.Seal {
	t.Helper()
	s, err := openOrCreate(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func openOrCreate(path string) (*seal.Seal, error) {
	s, err := seal.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return seal.Create(path)
	}
	return s, err
}

func TestSeal_SurvivesRestart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	first := open(t, path)
	sealed, err := first.Seal([]byte("whsec_x"), []byte("org_1|webhooks|whk_1|secret"))
	if err != nil || bytes.Contains(sealed, []byte("whsec_x")) {
		t.Fatalf("sealed %q, %v", sealed, err)
	}
	second := open(t, path)
	if plain, err := second.Unseal(sealed, []byte("org_1|webhooks|whk_1|secret")); err != nil || string(plain) != "whsec_x" {
		t.Errorf("unsealed %q, %v", plain, err)
	}
	if first.Digest("key") != second.Digest("key") || !bytes.Equal(first.Key("cursors"), second.Key("cursors")) {
		t.Error("digests or keys are others after a restart")
	}
}

func TestUnseal_RefusesMovedOrChanged(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "key"))
	sealed, err := s.Seal([]byte("secret"), []byte("org_1|t|1|c"))
	if err != nil {
		t.Fatal(err)
	}
	for _, place := range []string{"org_2|t|1|c", "org_1|t|2|c", "org_1|t|1|d", ""} {
		if _, err := s.Unseal(sealed, []byte(place)); err == nil {
			t.Errorf("accepted at %q", place)
		}
	}
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		if _, err := s.Unseal(changed, []byte("org_1|t|1|c")); err == nil {
			t.Errorf("accepted with byte %d changed", i)
		}
	}
	if _, err := open(t, filepath.Join(t.TempDir(), "key")).Unseal(sealed, []byte("org_1|t|1|c")); err == nil {
		t.Error("accepted with another master key")
	}
}

func TestOpen_FileMode(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	open(t, path)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v, %v; want 0600", info.Mode(), err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := openOrCreate(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a key others may read: %v, want to be told chmod 600", err)
	}
}

func TestOpen_BrokenKeyNotReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte("{half a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openOrCreate(path); err == nil || !strings.Contains(err.Error(), "replace it by the one of a backup") {
		t.Errorf("a broken key: %v", err)
	}
	if b, _ := os.ReadFile(path); string(b) != "{half a key" {
		t.Error("a broken key was written over: everything sealed with it would be lost")
	}
}

func TestDigestAndRandom(t *testing.T) {
	t.Parallel()
	a, b := open(t, filepath.Join(t.TempDir(), "key")), open(t, filepath.Join(t.TempDir(), "key"))
	if a.Digest("x") == b.Digest("x") || a.Digest("x") == a.Digest("y") || len(a.Digest("x")) != 64 {
		t.Error("digests do not depend on key and text")
	}
	if bytes.Equal(a.Key("one"), a.Key("two")) {
		t.Error("keys of two purposes are the same")
	}
	seen, counts := map[string]bool{}, map[rune]int{}
	for range 2000 {
		r := seal.Random(30)
		if len(r) != 30 || seen[r] {
			t.Fatalf("random text %q", r)
		}
		seen[r] = true
		for _, c := range r {
			counts[c]++
		}
	}
	if len(counts) != 62 {
		t.Errorf("%d characters in use, want 62", len(counts))
	}
	for c, n := range counts { // 967.7 expected, 31 standard deviation
		if n < 780 || n > 1160 {
			t.Errorf("%c came %d times of 60000", c, n)
		}
	}
}
