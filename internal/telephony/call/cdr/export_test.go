package cdr_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op/optest"
	"soniq/internal/telephony/call/calltest"
	"soniq/internal/telephony/call/cdr"
)

// cdrOrg is an organisation with the service of call detail records.
type cdrOrg struct{ *calltest.Org }

func newCDROrg(t *testing.T, d *db.DB) *cdrOrg {
	t.Helper()
	return &cdrOrg{calltest.New(t, d)}
}

// runExports starts the worker that writes exports.
func (o *cdrOrg) runExports() *job.Runner {
	o.T.Helper()
	r := &job.Runner{DB: o.DB, Queue: o.Jobs, Name: cdr.JobQueue, Node: "node_a", Log: slog.New(slog.DiscardHandler),
		Options: job.Options{Workers: 2, PerLane: 1, Timeout: time.Minute}}
	o.CDRs.Handle(r)
	o.Must(r.Start(context.Background()))
	o.T.Cleanup(func() { r.Stop(context.Background()) })
	return r
}

// waitExport waits until an export has the status.
func (o *cdrOrg) waitExport(id, status string) *optest.Answer {
	o.T.Helper()
	tick, late := time.NewTicker(20*time.Millisecond), time.After(2*time.Minute)
	defer tick.Stop()
	for {
		a := o.Do("GET", "/cdr/exports/"+id, nil).Want(200)
		if a.Text("status") == status {
			return a
		}
		select {
		case <-tick.C:
		case <-late:
			o.T.Fatalf("the export is not %s: %s", status, a.Bytes)
		}
	}
}

// fetchExport fetches the file of an export by its signed URL.
func (o *cdrOrg) fetchExport(a *optest.Answer) *optest.Answer {
	o.T.Helper()
	_, path, _ := strings.Cut(a.Text("url"), "/api/v1")
	return o.API.Do(optest.Admin("org_other"), "GET", path, nil) // the signature names the organisation, not the credential
}

func TestExport_CSVAndJSONLines(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newCDROrg(t, d)
		o.InsertEndedCalls(1203)
		ask := func(more map[string]any) string {
			body := map[string]any{"since": o.At.Format(time.RFC3339), "until": "2999-01-01", "format": "csv"}
			for k, v := range more {
				body[k] = v
			}
			a := o.Do("POST", "/cdr/exports", body).Want(202)
			if a.Text("status") != "queued" || !strings.HasSuffix(a.Header.Get("Location"), "/cdr/exports/"+a.Text("id")) {
				t.Errorf("accepted %s", a.Bytes)
			}
			return a.Text("id")
		}
		o.Clock = clock.Func(func() time.Time { return o.At.Add(time.Hour) })
		all, some := ask(nil), ask(map[string]any{"format": "jsonl", "columns": []string{"call_id", "from_number", "contact.name"}, "filters": map[string]any{"from_number": "+12025550007"}})
		o.Do("GET", "/cdr/exports/"+all+"/file", nil).Want(409).Refused("invalid_state")
		o.runExports()
		a := o.waitExport(all, "ready")
		if a.At("records_total") != 1203.0 || a.At("records_done") != 1203.0 || a.At("error") != nil || a.Text("expires_at") == "" {
			t.Errorf("ready: %s", a.Bytes)
		}
		f := o.fetchExport(a).Want(200)
		rows, err := csv.NewReader(strings.NewReader(string(f.Bytes))).ReadAll()
		if err != nil || len(rows) != 1204 || float64(len(f.Bytes)) != a.At("size_bytes") || !strings.HasPrefix(f.Header.Get("Content-Type"), "text/csv") {
			t.Fatalf("%d rows of %d bytes, %v, %s", len(rows), len(f.Bytes), err, f.Header)
		}
		at := map[string]int{}
		for i, name := range rows[0] {
			at[name] = i
		}
		for _, name := range []string{"id", "agent.name", "contact.company", "quality.mos", "tags", "metadata", "sandbox"} {
			if _, ok := at[name]; !ok {
				t.Errorf("no column %s in %v", name, rows[0])
			}
		}
		for i, r := range rows[1:] {
			if r[at["from_number"]] != fmt.Sprintf("+1202555%04d", i) || r[at["from_name"]] != "'=1+1" {
				t.Fatalf("row %d is %v", i, r)
			}
		}
		var one map[string]any
		lines := strings.Split(strings.TrimSpace(string(o.fetchExport(o.waitExport(some, "ready")).Want(200).Bytes)), "\n")
		if err := json.Unmarshal([]byte(lines[0]), &one); err != nil || len(lines) != 1 || len(one) != 3 ||
			one["from_number"] != "+12025550007" || one["contact.name"] != nil {
			t.Errorf("narrowed: %v, %v", lines, err)
		}
		o.API.Do(optest.Admin("org_other"), "GET", "/cdr/exports/"+all, nil).Want(404)
		o.API.Do(optest.Admin("org_other"), "GET", "/cdr/exports/"+all+"/file", nil).Want(404)
		_, path, _ := strings.Cut(a.Text("url"), "/api/v1")
		o.API.Do(optest.Admin("org_other"), "GET", strings.Replace(path, all, some, 1), nil).Want(401)
	})
}

func TestExport_ViolationsReported(t *testing.T) {
	t.Parallel()
	o := newCDROrg(t, dbtest.SQLite(t))
	o.Do("POST", "/cdr/exports", map[string]any{"since": "x", "until": "", "format": "csv", "columns": []string{"id", "secret"}}).Want(422).
		Refused("validation_failed", "since invalid_time", "until required", "columns.1 invalid_value")
	o.Do("POST", "/cdr/exports", map[string]any{"since": "2026-02-01", "until": "2026-01-01", "format": "csv"}).Want(422).Refused("validation_failed", "until out_of_range")
	o.Do("POST", "/cdr/exports", map[string]any{"since": "2026-01-01", "until": "2026-02-01", "format": "parquet"}).Want(422).Refused("validation_failed")
	for range 10 {
		o.Do("POST", "/cdr/exports", map[string]any{"since": "2020-01-01", "until": "2020-02-01", "format": "csv"}).Want(202)
	}
	o.Do("POST", "/cdr/exports", map[string]any{"since": "2020-01-01", "until": "2020-02-01", "format": "csv"}).Refused("concurrency_limit")
}

func TestExport_FileDeletedOnExpiryAndErasure(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newCDROrg(t, d)
		o.InsertEndedCalls(3)
		o.runExports()
		ask := map[string]any{"since": "2000-01-01", "until": "2999-01-01", "format": "jsonl"}
		first := o.waitExport(o.Do("POST", "/cdr/exports", ask).Want(202).Text("id"), "ready")
		ctx := context.Background()
		o.Must(d.TxContext(ctx, func(ctx context.Context, tx db.Querier) error { return o.CDRs.InvalidateExports(ctx, tx, o.ID) }))
		o.Do("GET", "/cdr/exports/"+first.Text("id"), nil).Want(200)
		o.fetchExport(first).Want(410).Refused("gone")
		o.waitFileGone(fmt.Sprintf("%s/exports/%s.jsonl", o.ID, first.Text("id")))
		second := o.waitExport(o.Do("POST", "/cdr/exports", ask).Want(202).Text("id"), "ready")
		o.Must(d.Tx(ctx, func(tx db.Querier) error {
			_, err := tx.Exec(ctx, `UPDATE cdr_exports SET expires_at = 1 WHERE org_id = $1`, o.ID)
			return err
		}))
		a := o.waitExport(second.Text("id"), "expired")
		if a.At("url") != nil {
			t.Errorf("expired with an address: %s", a.Bytes)
		}
	})
}

// waitFileGone waits until a file is deleted.
func (o *cdrOrg) waitFileGone(name string) {
	o.T.Helper()
	tick, late := time.NewTicker(20*time.Millisecond), time.After(2*time.Minute)
	defer tick.Stop()
	for {
		f, _, err := o.Files.Open(context.Background(), name)
		if err != nil {
			return
		}
		f.Close()
		select {
		case <-tick.C:
		case <-late:
			o.T.Fatal("the file is still there")
		}
	}
}
