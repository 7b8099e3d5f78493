package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBadAuthoritiesAreNamedAtTheStart(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "roots.pem")
	for text, want := range map[string]string{
		"":        "has no certificates",
		"nothing": "has no certificates",
		"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n": "number 1 is not",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Parse("--stir-roots", file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want it to say %q", text, err, want)
		}
	}
	if _, err := Parse("--stir-roots", file+".gone"); err == nil || !strings.Contains(err.Error(), "--stir-roots") {
		t.Errorf("no file: %v", err)
	}
}
