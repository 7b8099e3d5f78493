package e2e

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"soniq/db"
	"soniq/e2e/rig"
)

// A program's call is dialled before its row is committed. Where the database then refuses the row, the program is told so, the telephone that rings is let go
// of, and nothing of the call is left that others could see.
func TestAPlacedCallWhoseRowIsRefusedIsEnded(t *testing.T) {
	t.Parallel()
	o := newOffice(rig.Start(t, rig.Options{Env: quiet, Upset: true}))
	refuse(t, o.Server, "not to be written")
	var problem map[string]any
	o.Want(500, "POST", "/calls", map[string]any{"to": "ext:" + o.bob.Extension, "user_id": o.ada.ID,
		"metadata": map[string]string{"order": "not to be written"}}, &problem)
	if problem["code"] != "internal" {
		t.Errorf("problem %v", problem)
	}
	rig.Until(t, "nobody is on a call", 10*time.Second, func() bool {
		var live struct{ Data []map[string]any }
		o.Want(200, "GET", "/calls/live", nil, &live)
		return len(live.Data) == 0
	})
	if all := o.records(0, ""); len(all) != 0 {
		t.Errorf("records of it: %v", all)
	}
	o.call() // the telephones are free, and the next call is as any other
}

// refuse has the database refuse calls whose metadata holds a text.
func refuse(t *testing.T, s *rig.Server, text string) {
	t.Helper()
	ctx := context.Background()
	d, err := db.Open(ctx, filepath.Join(s.Data, "soniq.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	err = d.Tx(ctx, func(tx db.Querier) error {
		_, err := tx.Exec(ctx, `CREATE TRIGGER refuse BEFORE INSERT ON calls WHEN NEW.metadata LIKE '%`+text+`%' BEGIN SELECT RAISE(ABORT, 'refused'); END`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
