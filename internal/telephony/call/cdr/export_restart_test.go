package cdr_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"soniq/internal/platform/blob"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
)

// hookedFiles calls a function when an export asks for the path of its file.
type hookedFiles struct {
	*blob.Dir
	onPath func()
}

func (h hookedFiles) Path(name string) (string, error) {
	if strings.Contains(name, "/exports/") {
		h.onPath()
	}
	return h.Dir.Path(name)
}

// exportLines waits for an export and returns the lines of its file without the header.
func (o *cdrOrg) exportLines(id string) []string {
	o.T.Helper()
	text := string(o.fetchExport(o.waitExport(id, "ready")).Want(200).Bytes)
	return strings.Split(strings.TrimSpace(text), "\n")[1:]
}

func TestExport_RestartsAfterErasure(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newCDROrg(t, d)
		o.InsertEndedCalls(3)
		ctx := context.Background()
		var begun atomic.Int32
		o.StoreExports(hookedFiles{o.Files, func() {
			if begun.Add(1) > 1 {
				return
			}
			err := d.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
				all, err := o.Calls.EndedCallsWith(ctx, tx, o.ID, "+12025550001", 10)
				if err != nil || len(all) != 1 {
					return fmt.Errorf("%d calls to erase, %w", len(all), err)
				}
				if err := o.Calls.Erase(ctx, tx, o.ID, all[0].ID, "+12025550001"); err != nil {
					return err
				}
				return o.CDRs.InvalidateExports(ctx, tx, o.ID)
			})
			if err != nil {
				t.Error(err)
			}
		}})
		o.runExports()
		lines := o.exportLines(o.Do("POST", "/cdr/exports", map[string]any{"since": "2000-01-01", "until": "2999-01-01", "format": "csv"}).Want(202).Text("id"))
		if text := strings.Join(lines, "\n"); len(lines) != 3 || strings.Contains(text, "+12025550001") || !strings.Contains(text, "+12025550002") {
			t.Errorf("the file has %s", text)
		}
		if n := begun.Load(); n < 2 {
			t.Errorf("begun %d times", n)
		}
	})
}

func TestExport_ResumesAfterLeaseExpiry(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newCDROrg(t, d)
		o.InsertEndedCalls(3)
		ctx := context.Background()
		id := o.Do("POST", "/cdr/exports", map[string]any{"since": "2000-01-01", "until": "2999-01-01", "format": "csv"}).Want(202).Text("id")
		o.Must(d.Tx(ctx, func(tx db.Querier) error { // the state that a killed node leaves
			if _, err := tx.Exec(ctx, `UPDATE jobs SET state = 1, attempt = 1, worker = 'node_gone', lease_until = 1 WHERE org_id = $1 AND kind = 'cdr.export'`, o.ID); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `UPDATE cdr_exports SET status = 'running', total = 3, done = 1, started_at = 1 WHERE org_id = $1`, o.ID)
			return err
		}))
		path, err := o.Files.Path(fmt.Sprintf("%s/exports/%s.csv", o.ID, id))
		o.Must(err)
		o.Must(os.MkdirAll(strings.TrimSuffix(path, id+".csv"), 0o700))
		o.Must(os.WriteFile(path+".part", []byte(strings.Repeat("half a record,", 1000)), 0o600))
		o.runExports()
		if lines := o.exportLines(id); len(lines) != 3 || strings.Contains(strings.Join(lines, ""), "half a record") {
			t.Errorf("the file has %v", lines)
		}
		if _, err := os.Stat(path + ".part"); !os.IsNotExist(err) {
			t.Errorf("the part is left: %v", err)
		}
	})
}
