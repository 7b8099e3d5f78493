package recovery

import (
	"archive/zip"
	"bytes"
	"fmt"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// TestKill_ExportsOfPersons kills the server three times just after it has accepted exports. Each export is ready after the next start, and
// its file is whole.
func TestKill_ExportsOfPersons(t *testing.T) {
	t.Parallel()
	limit.Budget(t, time.Minute, "the server starts four times")
	rig.Each(t, rig.Options{Env: fixture.NoSpeech}, func(t *testing.T, s *rig.Server) {
		o := fixture.NewOrg(s)
		for round := range 3 {
			var ids []string
			for i := range 3 { // more are refused until one of them is ready
				number := fmt.Sprintf("+1212555%04d", 100*round+i)
				o.Want(201, "POST", "/contacts", map[string]any{"first_name": "Ada", "phones": []map[string]any{{"number": number}}}, nil)
				var e struct{ ID string }
				o.Want(202, "POST", "/memory/exports", map[string]any{"phone": number}, &e)
				ids = append(ids, e.ID)
			}
			s.Kill()
			s.Start()
			for _, id := range ids {
				wantExport(o, id)
			}
		}
	})
}

// wantExport waits for an export, and requires that its file has the contact.
func wantExport(o *fixture.Org, id string) {
	o.T.Helper()
	var e struct{ Status string }
	rig.Until(o.T, "the export "+id, time.Minute, func() bool {
		o.Want(200, "GET", "/memory/exports/"+id, nil, &e)
		return e.Status == "ready"
	})
	a := o.Do("GET", "/memory/exports/"+id+"/file", nil)
	z, err := zip.NewReader(bytes.NewReader(a.Body), int64(len(a.Body)))
	if err != nil {
		o.T.Fatalf("file of %s: status %d, %v", id, a.Status, err)
	}
	f, err := z.Open("contacts.json")
	if err != nil {
		o.T.Fatalf("file of %s: %v", id, err)
	}
	if info, err := f.Stat(); err != nil || info.Size() == 0 {
		o.T.Errorf("contacts of %s: %v", id, err)
	}
}
