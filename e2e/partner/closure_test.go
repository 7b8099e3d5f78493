package partner

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

func TestClosure_ErasesEverything(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: fixture.NoSpeech, Flags: []string{"--close-grace", "1s"}})
	p := newPractice(t, s)
	p.callIn()
	call := p.site.CDR("+12125550177").CallID
	p.site.Want(201, "POST", "/calls/"+call+"/note", map[string]any{"body": "The patient asked for Thursday."}, nil)
	p.phone.Close()
	secrets := []string{"dental.example", "Harbor Dental", "asked for Thursday", p.way.Number, p.ada.SIP.Username,
		p.site.Key[len(p.site.Key)-12:]}
	if found := filesContaining(t, s, secrets...); len(found) < 4 { // the search can fail
		t.Fatalf("before, only %v are found", found)
	}
	if !exists(t, filepath.Join(s.Data, "recordings", p.child)) {
		t.Fatal("there is no recording to erase")
	}
	p.Want(202, "DELETE", "/partners/"+p.child+"?confirm=Harbor+Dental", nil, nil)
	rig.Until(t, "the end of the child", 60*time.Second, func() bool { return p.Do("GET", "/partners/"+p.child, nil).Status == 404 })
	if r := p.site.Do("GET", "/users", nil); r.Status != 401 {
		t.Errorf("the child's key: %d %s", r.Status, r.Body)
	}
	if exists(t, filepath.Join(s.Data, "recordings", p.child)) {
		t.Error("recordings are left")
	}
	s.Stop()
	if found := filesContaining(t, s, secrets...); len(found) > 0 {
		t.Errorf("in the data folder is still: %v", found)
	}
}

// exists reports whether a file exists.
func exists(t *testing.T, path string) bool {
	t.Helper()
	_, err := os.Stat(path)
	return err == nil
}

// filesContaining lists which of the texts are in a file of the data folder.
func filesContaining(t *testing.T, s *rig.Server, texts ...string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(s.Data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, text := range texts {
			if bytes.Contains(b, []byte(text)) {
				found = append(found, text+" in "+filepath.Base(path))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
