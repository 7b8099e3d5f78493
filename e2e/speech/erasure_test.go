package speech

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/fixture/database"
	"soniq/e2e/rig"
)

// wantErased erases all data about a caller and searches the remaining data of the server: every column of every
// table, and every file, byte for byte.
func wantErased(s *fixture.Org, from string, spoken fixture.CDR) {
	s.T.Helper()
	const secret = "zanzibar"
	summary := s.CDRs(2, "")[1].Summary
	if summary == nil {
		s.T.Fatal("the call has no summary to erase")
	}
	s.Want(201, "POST", "/calls/"+spoken.CallID+"/note", map[string]any{"body": "they are off to " + secret + ", call " + from}, nil)
	s.Want(200, "POST", "/calls/"+spoken.CallID+"/tag", map[string]any{"tag": "ring " + from}, nil)
	left := addContacts(s, from, secret)
	s.Want(201, "POST", "/memory/callers/"+url.PathEscape(from)+"/facts", map[string]any{"text": "collects " + secret}, nil)
	exportCDRs(s)
	exported := exportPerson(s, from)
	traces := []string{strings.TrimPrefix(from, "+"), secret, *summary, "Quetzalcoatl"}
	for _, needle := range traces {
		if len(placesOf(s, needle)) == 0 {
			s.T.Errorf("%q is nowhere to be found before it is erased: is this search looking at the right places?", needle)
		}
	}
	wantExported(s, exported, spoken, traces)
	own := s.Do("DELETE", "/memory/callers/"+url.PathEscape(spoken.To), nil)
	if own.Status != 422 {
		s.T.Errorf("erasing a number of the organisation: %d %s", own.Status, own.Body)
	}
	var erasure struct {
		ID    string `json:"erasure_id"`
		Items int
	}
	s.Want(202, "DELETE", "/memory/callers/"+url.PathEscape(from)+"?reason=asked", nil, &erasure)
	if erasure.ID == "" || erasure.Items < 2 {
		s.T.Errorf("erasure: %+v", erasure)
	}
	rig.Until(s.T, "the audio is gone", 30*time.Second, func() bool {
		left, err := filepath.Glob(filepath.Join(s.Server.Data, "recordings", "*", "*", "*", spoken.CallID+"*"))
		return err == nil && len(left) == 0
	})
	rig.Until(s.T, "nobody has this number", 30*time.Second, func() bool {
		var page struct{ Data []fixture.CDR }
		s.Want(200, "GET", "/cdr?phone="+url.QueryEscape(from), nil, &page)
		return len(page.Data) == 0
	})
	rig.Until(s.T, "nobody is known by this number", 30*time.Second, func() bool {
		return s.Do("GET", "/contacts/lookup?fresh=true&phone="+url.QueryEscape(from), nil).Status == 404
	})
	rig.Until(s.T, "the contact with another number has neither this one nor the note", 30*time.Second, func() bool {
		c := s.Do("GET", "/contacts/"+left, nil).JSON()
		return fmt.Sprint(c["phones"]) == "[map[number:+12125550188 primary:true]]" && c["notes_count"] == 0.0
	})
	eraseContact(s, left, "+12125550188")
	if records := s.CDRs(2, ""); records[0].From != "anonymous" || records[1].Summary != nil || records[1].RecordingURL != nil {
		s.T.Errorf("what is left of the calls: %+v", records)
	}
	s.Server.Stop()
	for _, needle := range traces {
		for _, place := range placesOf(s, needle) {
			s.T.Errorf("%q is still in %s", needle, place)
		}
	}
}

// exportPerson exports everything about a number and returns the files of the archive.
func exportPerson(s *fixture.Org, number string) map[string]string {
	s.T.Helper()
	var e struct{ ID, Status, URL string }
	s.Want(202, "POST", "/memory/exports", map[string]any{"phone": number}, &e)
	rig.Until(s.T, "the export of a person", 30*time.Second, func() bool {
		s.Want(200, "GET", "/memory/exports/"+e.ID, nil, &e)
		return e.Status == "ready"
	})
	a := s.Do("GET", "/memory/exports/"+e.ID+"/file", nil)
	z, err := zip.NewReader(bytes.NewReader(a.Body), int64(len(a.Body)))
	if err != nil {
		s.T.Fatalf("%d: %v", a.Status, err)
	}
	files := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			s.T.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			s.T.Fatal(err)
		}
		files[f.Name] = string(content)
	}
	return files
}

// wantExported requires that the export has every table with data that the erasure removes, and the sound of the call.
func wantExported(s *fixture.Org, files map[string]string, spoken fixture.CDR, traces []string) {
	s.T.Helper()
	for _, needle := range traces {
		for _, table := range database.TablesContaining(s, needle) {
			name := strings.TrimPrefix(table, "table ")
			if files[name+".json"] == "" && !strings.Contains(files["index.json"], `"what": "`+name+`"`) {
				s.T.Errorf("%q is in the table %s, but the export neither has it nor says that it is not included", needle, name)
			}
		}
	}
	sounds := 0
	for name, content := range files {
		if strings.HasPrefix(name, "sound/rec_") && strings.HasPrefix(content, "RIFF") {
			sounds++
		}
	}
	if sounds == 0 || !strings.Contains(files["calls.json"], spoken.CallID) || !strings.Contains(files["call_timelines.json"], spoken.CallID) ||
		!strings.Contains(files["index.json"], "not_included") {
		s.T.Errorf("%d sounds, calls %s, timelines %s, index %s", sounds, files["calls.json"], files["call_timelines.json"], files["index.json"])
	}
}

// exportCDRs exports all records to a file, which contains the caller's number.
func exportCDRs(s *fixture.Org) {
	s.T.Helper()
	var e struct{ ID, Status string }
	s.Want(202, "POST", "/cdr/exports", map[string]any{"since": "2020-01-01", "until": "2999-01-01", "format": "csv"}, &e)
	rig.Until(s.T, "the file of an export", 20*time.Second, func() bool {
		s.Want(200, "GET", "/cdr/exports/"+e.ID, nil, &e)
		return e.Status == "ready"
	})
	if files := filesContaining(s, "call_id,"); len(files) == 0 {
		s.T.Error("no export is among the files that are searched")
	}
}

// addContacts stores the caller as a contact of their own, as one number of another contact, with notes, and in a
// copied system. It returns the other contact.
func addContacts(s *fixture.Org, from, secret string) (left string) {
	s.T.Helper()
	system := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "id,name,company,phone\n1,Quetzalcoatl Smith,Feathers,%s\n", from)
	}))
	s.T.Cleanup(system.Close)
	s.Want(201, "POST", "/crm/connections", map[string]any{"provider": "csv", "name": "Sheet", "settings": map[string]any{"url": system.URL + "/list.csv"}}, nil)
	var alone, both struct{ ID string }
	s.Want(201, "POST", "/contacts", map[string]any{"first_name": "Quetzalcoatl", "phones": []map[string]any{{"number": from}}}, &alone)
	s.Want(201, "POST", "/contacts/"+alone.ID+"/notes", map[string]any{"body": "dreams of " + secret}, nil)
	s.Want(201, "POST", "/contacts", map[string]any{"company": "Mill", "phones": []map[string]any{{"number": "+12125550188"}, {"number": from}},
		"custom": map[string]string{"mobile": from}, "tags": []string{"rings as " + from}}, &both)
	s.Want(201, "POST", "/contacts/"+both.ID+"/notes", map[string]any{"body": "ask at " + spaced(from)}, nil)
	rig.Until(s.T, "the copied record", 20*time.Second, func() bool {
		var found struct{ Alternatives []struct{ Source string } }
		s.Want(200, "GET", "/contacts/lookup?phone="+url.QueryEscape(from), nil, &found)
		return slices.ContainsFunc(found.Alternatives, func(a struct{ Source string }) bool { return a.Source == "Sheet" })
	})
	return both.ID
}

// spaced returns a number as people write it, with spaces and signs between its digits.
func spaced(e164 string) string {
	return e164[:2] + " (" + e164[2:5] + ") " + e164[5:8] + "-" + e164[8:]
}

// eraseContact deletes a contact and erases all data about its number.
func eraseContact(s *fixture.Org, id, number string) {
	s.T.Helper()
	s.Want(201, "POST", "/contacts/"+id+"/notes", map[string]any{"body": "call " + number}, nil)
	s.Want(204, "DELETE", "/contacts/"+id+"?erase=true", nil, nil)
	rig.Until(s.T, number+" is nowhere", 30*time.Second, func() bool { return len(database.TablesContaining(s, strings.TrimPrefix(number, "+"))) == 0 })
}

// placesOf returns the tables and files that contain a text.
func placesOf(s *fixture.Org, text string) []string {
	s.T.Helper()
	return append(database.TablesContaining(s, text), filesContaining(s, text)...)
}

// filesContaining returns the files of the server that contain a text.
func filesContaining(s *fixture.Org, text string) (places []string) {
	s.T.Helper()
	err := filepath.WalkDir(s.Server.Data, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if err == nil && bytes.Contains(b, []byte(text)) {
			places = append(places, "file "+filepath.Base(path))
		}
		return err
	})
	if err != nil {
		s.T.Fatal(err)
	}
	return places
}
