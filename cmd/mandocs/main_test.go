package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWrite_PageForEachVisibleCommand writes the man pages: visible commands have one with example, flags and environment variables, and
// hidden commands have none.
func TestWrite_PageForEachVisibleCommand(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "man")
	if err := write(folder); err != nil {
		t.Fatal(err)
	}
	for page, wants := range map[string][]string{
		"soniq.1":                   {"soniq-calls(1)", "soniq-admin(1)"},
		"soniq-calls-dial.1":        {"ring the phones of a user, then the number", "EXAMPLE", "--wait", "SONIQ_KEY"},
		"soniq-admin-orgs-create.1": {"--country", "SONIQ_COUNTRY, default US"},
		"soniq-serve.1":             {"--summarizer", "--voice-agent", "SONIQ_HTTP"},
	} {
		text, err := os.ReadFile(filepath.Join(folder, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range wants {
			if !strings.Contains(string(text), w) {
				t.Errorf("%s does not have %q", page, w)
			}
		}
	}
	for _, hidden := range []string{"soniq-org.1", "soniq-asr-worker.1", "soniq-hearing-install.1"} {
		if _, err := os.Stat(filepath.Join(folder, hidden)); err == nil {
			t.Errorf("there is a page %s of a hidden command", hidden)
		}
	}
}
