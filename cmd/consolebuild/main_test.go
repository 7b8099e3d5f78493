package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The budgets of the console, in bytes as they are sent.
const (
	maxShell  = 130 << 10 // what every page loads: the script and its static imports
	maxStyles = 15 << 10
	maxChunk  = 70 << 10 // one file that is loaded later: menus, the telephone
	maxAll    = 700 << 10
)

// allowedLicences are the licences of the packages.
var allowedLicences = []string{"MIT", "ISC", "BSD-3-Clause", "Apache-2.0", "0BSD", "OFL-1.1", "Unlicense"}

// foreign matches addresses that a script could load something from. Names of XML namespaces and of documentation in error messages are
// never requested: the policy of the console allows no other host.
var foreign = regexp.MustCompile(`(?:src|href)\s*[=:]\s*["']?(?:https?:)?//[a-z]|url\(\s*["']?(?:https?:)?//|import\(\s*["']https?:`)

// TestBundle_SameTwiceAndWithinBudgets builds the console twice from the packages of the lock file.
func TestBundle_SameTwiceAndWithinBudgets(t *testing.T) {
	t.Chdir("../..")
	if err := install(t.Context(), filepath.Join(app, "package-lock.json"), modules, false); err != nil {
		t.Fatal(err)
	}
	files, err := bundle(app, modules)
	if err != nil {
		t.Fatal(err)
	}
	again, err := bundle(app, modules)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(again) || len(files) < 8 {
		t.Fatalf("%d files, then %d", len(files), len(again))
	}
	all := 0
	for name, content := range files {
		if !bytes.Equal(content, again[name]) {
			t.Errorf("%s differs in a second build", name)
		}
		all += len(content)
		switch text := unpacked(t, name, content); {
		case strings.HasPrefix(name, "licences"):
		case foreign.MatchString(text):
			t.Errorf("%s names another host: %s", name, foreign.FindString(text))
		case strings.HasPrefix(name, "style-") && len(content) > maxStyles:
			t.Errorf("%s has %d bytes, at most %d", name, len(content), maxStyles)
		case strings.HasSuffix(name, ".js.gz") && len(content) > maxChunk &&
			!strings.Contains(string(files["index.html"]), strings.TrimSuffix(name, ".gz")):
			t.Errorf("%s has %d bytes, at most %d", name, len(content), maxChunk)
		}
	}
	if all > maxAll {
		t.Errorf("all files have %d bytes, at most %d", all, maxAll)
	}
	shell := 0
	for _, m := range regexp.MustCompile(`/console/assets/([^"]+\.js)"`).FindAllStringSubmatch(string(files["index.html"]), -1) {
		if files[m[1]+".gz"] == nil {
			t.Errorf("index.html names %s, which was not built", m[1])
		}
		shell += len(files[m[1]+".gz"])
	}
	t.Logf("shell %d bytes, all %d bytes", shell, all)
	if shell > maxShell || shell == 0 {
		t.Errorf("what every page loads has %d bytes, at most %d", shell, maxShell)
	}
	for _, name := range []string{"react", "jssip", "wouter", "@fontsource-variable/inter"} {
		if !strings.Contains(unpacked(t, "licences.txt.gz", files["licences.txt.gz"]), "==== "+name+"\n") {
			t.Errorf("licences.txt lacks %s", name)
		}
	}
}

// unpacked returns the text of a file.
func unpacked(t *testing.T, name string, content []byte) string {
	t.Helper()
	if !strings.HasSuffix(name, ".gz") {
		return string(content)
	}
	r, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestLock_IntegrityAndLicences(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", app, "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	var l lock
	if err := json.Unmarshal(text, &l); err != nil {
		t.Fatal(err)
	}
	for place, p := range l.Packages {
		if place == "" {
			continue
		}
		if !strings.HasPrefix(p.Integrity, "sha512-") {
			t.Errorf("%s has no SHA-512: %q", place, p.Integrity)
		}
		if !slices.Contains(allowedLicences, p.License) {
			t.Errorf("%s has the licence %q", place, p.License)
		}
	}
	if len(l.Packages) < 10 {
		t.Errorf("only %d packages", len(l.Packages))
	}
}
