package main

import (
	"os"
	"path/filepath"
	"testing"
)

// A file is all that a language needs.
func TestTranslations_OfFiles(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, name := range []string{"fr.json", "en.json", "de.json", "words.tsx"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	script, err := translationsScript(folder)
	if want := `export default {"de": () => import("./de.json"),"fr": () => import("./fr.json"),}`; err != nil || script != want {
		t.Errorf("%s, %v, want %s", script, err, want)
	}
}
