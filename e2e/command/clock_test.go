package command_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"soniq/e2e/rig"
	"soniq/internal/platform/db"
)

// https://github.com/Tr3kkR/Yuzu/issues/2348
func TestClock_AheadAtStart(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		s := rig.Start(t, rig.Options{Upset: true, DB: address, Flags: quick.Flags})
		s.Stop()
		change(t, s, `INSERT INTO installation (name, value) VALUES ('last_moment', $1)
			ON CONFLICT (name) DO UPDATE SET value = excluded.value`, "1600000000000000") // the server may have stopped before it stored it
		change(t, s, `INSERT INTO jobs (id, org_id, queue, lane, kind, state, run_at, attempt, max_attempts, args, created_at, finished_at)
			VALUES ('job_old', 'org_x', 'none', 'none', 'none', 2, 0, 1, 1, '{}', 0, 1)`)
		doctor := []string{"doctor", "--http", "127.0.0.1:0", "--sip", "127.0.0.1:0", "--transcriber", "off", "--data", s.Data}
		confirm := []string{"admin", "clock", "confirm", "--data", s.Data}
		if address != "" {
			doctor, confirm = append(doctor, "--db", address), append(confirm, "--db", address)
		}
		for _, begin := range []func(){func() {}, s.Start} { // while no server runs, and while one does
			begin()
			says(t, soniq(t, nil, doctor...).out, "nothing is deleted by age", "days ahead", "soniq admin clock confirm")
		}
		if oldJobs(t, s) != 1 {
			t.Error("a job past its retention was deleted by a clock that is not trusted")
		}
		r := soniq(t, nil, confirm...)
		says(t, r.out+r.wrong, "the clock is trusted: 20")
		rig.Until(t, "the sweep after the clock was confirmed", 10*time.Second, func() bool { return oldJobs(t, s) == 0 })
	})
}

// oldJobs returns the number of jobs that ended in 1970.
func oldJobs(t *testing.T, s *rig.Server) (n int) {
	t.Helper()
	address := s.DB
	if address == "" {
		address = filepath.Join(s.Data, "soniq.db")
	}
	d, err := db.Open(context.Background(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Read(context.Background()).QueryRow(context.Background(),
		`SELECT COUNT(*) FROM jobs WHERE finished_at = 1`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
