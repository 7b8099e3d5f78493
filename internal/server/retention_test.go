package server

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"soniq/internal/config"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/pgtest"
	"soniq/internal/server/clocktrust"
)

// oldRows has a row of many kinds that are deleted by age, by table. $1 is an organisation, $2 the current time.
var oldRows = map[string]string{
	"audit": `INSERT INTO audit (org_id, id, at, operation, target, key_id, source, request_id)
		VALUES ($1, 'aud_1', $2, 'calls.get', 'call_1', 'key_1', '192.0.2.1', 'req_1')`,
	"events": `INSERT INTO events (org_id, id, sequence, kind, audience, body, occurred_at)
		VALUES ($1, 'evt_00000000000000000000000000', 1, 'call.missed', '{}', '{}', $2)`,
	"idempotency": `INSERT INTO idempotency (org_id, id, body_hash, state, status, created_at) VALUES ($1, 'key', '', 'done', 200, $2)`,
	"memory_facts": `INSERT INTO memory_facts (org_id, phone, id, text, created_by, created_at, expires_at)
		VALUES ($1, '+12025550100', 'fact_1', 'x', 'usr_1', 0, $2)`,
	"jobs": `INSERT INTO jobs (id, org_id, queue, lane, kind, state, run_at, attempt, max_attempts, args, created_at, finished_at)
		VALUES ('job_1', $1, 'none', 'none', 'none', 2, 0, 1, 1, '{}', 0, $2)`,
	"login_failures": `INSERT INTO login_failures (digest, failures, failed_at) VALUES ($1, 1, $2)`,
}

// https://github.com/Tr3kkR/Yuzu/issues/2348
// https://github.com/netdata/netdata/issues/4109
func TestSweep_ClockAhead(t *testing.T) {
	flags := map[string][]string{"sqlite": nil}
	if address := os.Getenv("SONIQ_TEST_POSTGRES"); address != "" {
		flags["postgres"] = []string{"--db", pgtest.New(t, address)}
	}
	for name, more := range flags {
		t.Run(name, func(t *testing.T) { checkSweepAhead(t, more) })
	}
}

func checkSweepAhead(t *testing.T, flags []string) {
	var log bytes.Buffer
	c, err := config.Parse(append([]string{"--data", t.TempDir(), "--transcriber", "off"}, flags...)...)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Open(t.Context(), c, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	fillOld(t, p)
	start := time.Now()
	if p.clock, err = clocktrust.Open(t.Context(), p.db, c.Data, func() (time.Time, time.Duration) {
		return start.AddDate(0, 0, 420), time.Since(start)
	}, p.log); err != nil {
		t.Fatal(err)
	}
	if err := p.sweep(t.Context()); !errors.Is(err, clocktrust.ErrDoubt) {
		t.Errorf("sweep with a clock 420 days ahead: %v", err)
	}
	if err := p.sweepLogins(t.Context()); err != nil {
		t.Error(err)
	}
	for table := range oldRows {
		if n := countOf(t, p, table); n != 1 {
			t.Errorf("%d rows of %s are left with a clock 420 days ahead", n, table)
		}
	}
	if _, _, err := p.confirmClock(t.Context(), struct{}{}); err != nil {
		t.Fatal(err)
	}
	if err := p.sweep(t.Context()); err != nil {
		t.Error(err)
	}
	for _, table := range []string{"audit", "events", "idempotency", "memory_facts", "jobs"} {
		if n := countOf(t, p, table); n != 0 {
			t.Errorf("%d rows of %s are left after the operator confirmed the clock", n, table)
		}
	}
	for _, what := range []string{`what="audit lines" count=1`, "what=events count=1", `what="memory facts" count=1`, "what=jobs count=1"} {
		if !strings.Contains(log.String(), what) {
			t.Errorf("the log has no %s:\n%s", what, log.String())
		}
	}
}

// fillOld creates an organisation with rows from now, and stores that the clock is trusted now.
func fillOld(t *testing.T, p *Platform) {
	t.Helper()
	o, err := p.orgs.Create(t.Context(), "Acme", "GB")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	err = p.db.Tx(t.Context(), func(tx db.Querier) error {
		for table, text := range oldRows {
			if _, err := tx.Exec(t.Context(), `DELETE FROM `+table); err != nil {
				return err
			}
			if _, err := tx.Exec(t.Context(), text, o.ID, db.At(now)); err != nil {
				return errors.Join(errors.New(table), err)
			}
		}
		_, err := tx.Exec(t.Context(), `INSERT INTO event_sequences (org_id, last) VALUES ($1, 1) ON CONFLICT (org_id) DO NOTHING`, o.ID)
		return err
	})
	if err == nil {
		_, err = p.clock.Confirm(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func countOf(t *testing.T, p *Platform, table string) (n int) {
	t.Helper()
	if err := p.db.Read(t.Context()).QueryRow(t.Context(), `SELECT COUNT(*) FROM `+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
