package server

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"soniq/internal/customer/erasure"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op/optest"
)

const exportedNumber = "+5491123456789" // has a second spelling

// runErasures starts the workers of exports and erasures.
func (h *testPlatform) runErasures() {
	h.t.Helper()
	queues := map[string]func(*job.Runner){erasure.Queue: h.erasures.RegisterJobs, erasure.ExportQueue: h.erasures.RegisterExportJobs}
	for name, handle := range queues {
		r := &job.Runner{DB: h.db, Queue: h.jobs, Name: name, Node: "node_a", Log: slog.New(slog.DiscardHandler),
			Options: job.Options{Workers: 1, PerLane: 1, Timeout: time.Minute}}
		handle(r)
		if err := r.Start(context.Background()); err != nil {
			h.t.Fatal(err)
		}
		h.t.Cleanup(func() { r.Stop(context.Background()) })
	}
}

// waitExport waits until an export has the status.
func (h *testPlatform) waitExport(who access.Principal, id, status string) *optest.Answer {
	h.t.Helper()
	tick, late := time.NewTicker(20*time.Millisecond), time.After(2*time.Minute)
	defer tick.Stop()
	for {
		a := h.server.Do(who, "GET", "/memory/exports/"+id, nil).Want(200)
		if a.Text("status") == status {
			return a
		}
		select {
		case <-tick.C:
		case <-late:
			h.t.Fatalf("the export is not %s: %s", status, a.Bytes)
		}
	}
}

// exportPerson exports a number and returns the files of the archive.
func (h *testPlatform) exportPerson(who access.Principal, number string) (id string, files map[string]string) {
	h.t.Helper()
	id = h.server.Do(who, "POST", "/memory/exports", map[string]any{"phone": number, "reason": "asked"}).Want(202).Text("id")
	h.waitExport(who, id, "ready")
	return id, unzip(h.t, h.server.Do(who, "GET", "/memory/exports/"+id+"/file", nil).Want(200).Bytes)
}

func unzip(t *testing.T, content []byte) map[string]string {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(f.Name, ".json") && !json.Valid(text) {
			t.Errorf("%s is no JSON: %s", f.Name, text)
		}
		files[f.Name] = string(text)
	}
	return files
}

// addMessageRow stores a text message.
func (h *testPlatform) addMessageRow(id, from, body string) {
	h.t.Helper()
	h.in(func(ctx context.Context, tx db.Querier) error {
		now := db.At(time.Now())
		_, err := tx.Exec(ctx, `INSERT INTO conversations (org_id, id, org_number, peer_number, status, unread_count, tags, last_message,
				last_message_at, created_at, updated_at)
			VALUES ($1, $2, '+12025550143', $3, 'open', 0, '[]', '{}', $4, $4, $4)`, h.org, "cnv_"+id, from, now)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO messages (org_id, id, conversation_id, direction, status, from_number, to_number, body, segments,
				encoding, media, source, created_at, metadata, sandbox, carrier, automatic)
			VALUES ($1, $2, $3, 'inbound', 'received', $4, '+12025550143', $5, 1, 'gsm7', '[]', 'carrier', $6, '{}', FALSE, '', FALSE)`,
			h.org, "sms_"+id, "cnv_"+id, from, body, now)
		return err
	})
}

// TestPersonExport_EverythingOfOneNumber proves that an export has everything that is kept about one number, in both of its spellings, and
// nothing about others. It ends with the erasure, which leaves nothing to export.
//
// https://github.com/rapidpro/rapidpro/issues/1277
func TestPersonExport_EverythingOfOneNumber(t *testing.T) {
	t.Parallel()
	eachHouse(t, func(t *testing.T, h *testPlatform) {
		h.t = t
		admin := optest.Admin(h.org)
		h.runErasures()
		other := "+442079460018"
		h.addContact(admin, "Quetzal", exportedNumber, "dreams of Zanzibar")
		h.addContact(admin, "Somebody", other, "somebody's secret")
		h.addMessageRow("1", "+541123456789", "sent by Quetzal") // the other spelling
		h.addMessageRow("2", other, "sent by somebody")
		h.server.Do(admin, "POST", "/memory/callers/"+"%2B5491123456789"+"/facts", `{"text":"collects stamps"}`).Want(201)

		id, files := h.exportPerson(admin, exportedNumber)
		for file, text := range map[string]string{"contacts.json": "Quetzal", "contact_notes.json": "dreams of Zanzibar", "messages.json": "sent by Quetzal",
			"conversations.json": "+541123456789", "memory_facts.json": "collects stamps", "contact_phones.json": exportedNumber,
			"index.json": `"not_included"`} {
			if !strings.Contains(files[file], text) {
				t.Errorf("%s does not have %q: %s", file, text, files[file])
			}
		}
		for file, text := range files {
			for _, foreign := range []string{"omebody", other, h.org} {
				if strings.Contains(text, foreign) {
					t.Errorf("%s has %q: %s", file, foreign, text)
				}
			}
		}
		var messages []struct {
			CreatedAt time.Time `json:"created_at"`
			Sandbox   any
			Metadata  map[string]any
		}
		if err := json.Unmarshal([]byte(files["messages.json"]), &messages); err != nil || len(messages) != 1 ||
			time.Since(messages[0].CreatedAt) > time.Hour || messages[0].Sandbox != false {
			t.Errorf("%v: %s", err, files["messages.json"])
		}

		h.server.Do(optest.Admin("org_other"), "GET", "/memory/exports/"+id, nil).Want(404)
		h.server.Do(optest.Admin("org_other"), "GET", "/memory/exports/"+id+"/file", nil).Want(404)
		h.server.Do(access.Principal{OrgID: h.org, KeyID: "key_1", Scopes: []access.Scope{access.CallsRead}}, "POST", "/memory/exports",
			map[string]any{"phone": exportedNumber}).Want(403)
		for _, text := range []string{"reception", "101", "sip:101@example.com"} {
			h.server.Do(admin, "POST", "/memory/exports", map[string]any{"phone": text}).Refused("validation_failed", "phone invalid_e164")
		}

		h.server.Do(admin, "DELETE", "/memory/callers/%2B5491123456789", nil).Want(202)
		h.waitExport(admin, id, "expired") // the erasure ends earlier exports
		h.server.Do(admin, "GET", "/memory/exports/"+id+"/file", nil).Want(410)
		_, files = h.exportPerson(admin, exportedNumber)
		if len(files) != 1 || files["index.json"] == "" {
			t.Errorf("after the erasure the export has %v", files)
		}
	})
}

// addWords ends the calls of a caller, and gives the first one a recording and a transcript.
func (h *testPlatform) addWords(from, words string) (recording string) {
	h.t.Helper()
	recording = db.NewID("rec")
	name := h.org + "/" + recording + ".wav"
	if _, err := h.files.Put(context.Background(), name, strings.NewReader("sound of "+from)); err != nil {
		h.t.Fatal(err)
	}
	h.in(func(ctx context.Context, tx db.Querier) error {
		now := db.At(time.Now())
		if _, err := tx.Exec(ctx, `UPDATE calls SET ended_at = $2, status = 'completed' WHERE org_id = $1 AND from_number = $3`, h.org, now, from); err != nil {
			return err
		}
		var id string
		if err := tx.QueryRow(ctx, `SELECT MIN(id) FROM calls WHERE org_id = $1 AND from_number = $2`, h.org, from).Scan(&id); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO recordings (org_id, id, call_id, status, format, channels, sample_rate_hz, duration_seconds, size_bytes,
				blob, pauses, consent, started_by, legal_hold, started_at, node)
			VALUES ($1, $2, $3, 'available', 'wav', 2, 8000, 1, 10, $4, '[]', 'none', 'policy', $5, $6, 'node_a')`,
			h.org, recording, id, name, true, now)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO transcripts (org_id, id, call_id, status, language, engine, duration_seconds, word_count, text,
				segments, created_at)
			VALUES ($1, $2, $3, 'completed', 'en', 'none', 1, 1, $4, '[{"text":"x"}]', $5)`, h.org, db.NewID("trn"), id, words, now)
		return err
	})
	return recording
}

func TestPersonExport_CallsWithSound(t *testing.T) {
	t.Parallel()
	eachHouse(t, func(t *testing.T, h *testPlatform) {
		h.t = t
		admin := optest.Admin(h.org)
		h.runErasures()
		h.addDay(2) // calls, voicemail and messages of the known number
		recording := h.addWords(known, "the parrot is in Zanzibar")
		h.in(func(ctx context.Context, tx db.Querier) error { // the calls of somebody else
			_, err := tx.Exec(ctx, `UPDATE calls SET from_number = '+12125550199' WHERE org_id = $1
				AND id = (SELECT MAX(id) FROM calls WHERE org_id = $1)`, h.org)
			if err == nil { // the message has the same sound
				_, err = tx.Exec(ctx, `UPDATE voicemails SET blob = $2 WHERE org_id = $1`, h.org, h.org+"/"+recording+".wav")
			}
			return err
		})
		_, files := h.exportPerson(admin, known)
		for file, text := range map[string]string{"calls.json": known, "transcripts.json": "the parrot is in Zanzibar", "recordings.json": recording,
			"sound/" + recording + ".wav": "sound of " + known, "voicemails.json": known, "messages.json": "words 1", "events.json": known} {
			if !strings.Contains(files[file], text) {
				t.Errorf("%s does not have %q: %s", file, text, files[file])
			}
		}
		if n := strings.Count(files["calls.json"], `"id":"call_`); n != 1 || strings.Contains(files["calls.json"], "+12125550199") {
			t.Errorf("%d calls are exported: %s", n, files["calls.json"])
		}
		if n := strings.Count(files["voicemails.json"], `"id":"vm_`); n != 1 {
			t.Errorf("%d messages are exported: %s", n, files["voicemails.json"])
		}
		sounds := 0
		for name := range files {
			if strings.HasPrefix(name, "sound/") {
				sounds++
			}
		}
		if sounds != 2 {
			t.Errorf("%d sound files: %s", sounds, files["index.json"])
		}
		if err := h.files.Delete(context.Background(), h.org+"/"+recording+".wav"); err != nil {
			t.Fatal(err)
		}
		if _, files = h.exportPerson(admin, known); !strings.Contains(files["index.json"], "does not have the sound") {
			t.Errorf("the index does not tell what is missing: %s", files["index.json"])
		}
	})
}

func TestPersonExport_BeginsAgainAfterKill(t *testing.T) {
	t.Parallel()
	eachHouse(t, func(t *testing.T, h *testPlatform) {
		h.t = t
		admin := optest.Admin(h.org)
		h.addContact(admin, "Quetzal", exportedNumber, "dreams of Zanzibar")
		id := h.server.Do(admin, "POST", "/memory/exports", map[string]any{"phone": exportedNumber}).Want(202).Text("id")
		h.in(func(ctx context.Context, tx db.Querier) error { // the state that a killed node leaves
			if _, err := tx.Exec(ctx, `UPDATE jobs SET state = 1, attempt = 1, worker = 'node_gone', lease_until = 1
				WHERE org_id = $1 AND kind = 'person.export'`, h.org); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `UPDATE person_exports SET status = 'running', items = 7, parts_done = 3, started_at = 1 WHERE org_id = $1`, h.org)
			return err
		})
		path, err := h.files.Path(fmt.Sprintf("%s/exports/%s.zip", h.org, id))
		if err == nil {
			err = os.MkdirAll(filepath.Dir(path), 0o700)
		}
		if err == nil {
			err = os.WriteFile(path+".part", bytes.Repeat([]byte("half"), 10000), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		h.runErasures()
		done := h.waitExport(admin, id, "ready")
		files := unzip(t, h.server.Do(admin, "GET", "/memory/exports/"+id+"/file", nil).Want(200).Bytes)
		if !strings.Contains(files["contacts.json"], "Quetzal") || done.At("parts_done") != done.At("parts_total") {
			t.Errorf("%v, %s", files, done.Bytes)
		}
		left, err := os.ReadDir(filepath.Dir(path))
		if err != nil || len(left) != 1 {
			t.Errorf("%v are left, %v", left, err)
		}
	})
}
