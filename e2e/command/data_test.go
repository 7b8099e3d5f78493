package command_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"soniq/e2e/rig"
	"soniq/internal/platform/db/pgtest"
)

func TestMigrate_Pending(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	status := func(words ...string) {
		t.Helper()
		r := soniq(t, nil, "migrate", "--status", "--data", data)
		if r.code != 0 {
			t.Errorf("migrate --status: %+v", r)
		}
		says(t, r.out, words...)
	}
	status("pending 0001_org", "pending 0010_user")
	status("pending 0001_org") // showing changes nothing
	applied := soniq(t, nil, "migrate", "--data", data)
	if applied.code != 0 || strings.Contains(applied.out, "pending") {
		t.Errorf("migrate: %+v", applied)
	}
	says(t, applied.out, "applied 0001_org", "applied 0010_user")
	status("the database is up to date")
	s := rig.Start(t, rig.Options{Data: data, Flags: []string{"--transcriber", "off"}})
	status("the database is up to date") // also beside a running server
	if r := soniq(t, nil, "migrate", "--data", s.Data); r.code != 1 {
		t.Errorf("migrate beside a running server: %+v", r)
	}
}

// TestBackup_RunningServer copies a server while it runs, and starts the copy.
func TestBackup_RunningServer(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, quick)
	o := newOffice(t, s)
	call := o.talk(time.Second)
	to := filepath.Join(t.TempDir(), "copy")
	r := soniq(t, nil, "backup", "--data", s.Data, "--to", to)
	if r.code != 0 {
		t.Fatalf("backup: %+v", r)
	}
	says(t, r.out, to, "1 recordings")
	o.AddUser("Later") // after the backup: the original continues
	if again := soniq(t, nil, "backup", "--data", s.Data, "--to", to); again.code != 1 {
		t.Errorf("a second backup into the same folder: %+v", again)
	}
	want := fetch(o.Client, call)
	copied := rig.Start(t, rig.Options{Data: to, Flags: []string{"--transcriber", "off"}})
	restored := *o.Client
	restored.Server = copied
	got := fetch(&restored, call)
	for i := range want {
		if !bytes.Equal(got[i], want[i]) {
			t.Errorf("the copy serves %.300s\nthe original     %.300s", got[i], want[i])
		}
	}
	var people struct{ Data []any }
	if restored.Want(200, "GET", "/users", nil, &people); len(people.Data) != 2 {
		t.Errorf("%d users in the copy, want 2", len(people.Data))
	}
	restoredCalls(t, o, copied)
	alone(t, s)
}

// fetch returns everything that the API shows of a call.
func fetch(c *rig.Client, call string) (all [][]byte) {
	var rec struct{ ID string }
	c.Want(200, "GET", "/calls/"+call+"/recording", nil, &rec)
	for _, path := range []string{"/recordings/" + rec.ID + "/audio", "/calls/" + call, "/cdr/" + call} {
		r := c.Do("GET", path, nil)
		if !strings.HasSuffix(path, "/audio") { // addresses contain the server's address
			r.Body = bytes.ReplaceAll(r.Body, []byte(c.Server.HTTP), []byte("server"))
		}
		if r.Status != 200 {
			c.T.Errorf("GET %s: %d %s", path, r.Status, r.Body)
		}
		all = append(all, r.Body)
	}
	return all
}

// restoredCalls makes the phones of the original call each other through the copy, with their old passwords.
func restoredCalls(t *testing.T, o *office, copied *rig.Server) {
	t.Helper()
	moved := *o
	client := *o.Client
	client.Server = copied
	moved.Client = &client
	registration := copied.Sipp(rig.Script{Scenario: "register", Login: &o.bob.SIP})
	registration.Wait()
	moved.port = registration.Port
	caller, callee := moved.ring(300 * time.Millisecond)
	caller.Wait()
	callee.Wait()
}

// alone backs up a folder while no server uses it.
func alone(t *testing.T, s *rig.Server) {
	t.Helper()
	s.Stop()
	to := filepath.Join(t.TempDir(), "another")
	if r := soniq(t, nil, "backup", "--data", s.Data, "--to", to); r.code != 0 {
		t.Errorf("backup without a server: %+v", r)
	}
	for _, name := range []string{"soniq.db", "master.key", "node"} {
		if _, err := os.Stat(filepath.Join(to, name)); err != nil {
			t.Error(err)
		}
	}
}

// TestBackup_PostgreSQL backs up keys and recordings. The database itself is backed up with tools of PostgreSQL.
func TestBackup_PostgreSQL(t *testing.T) {
	t.Parallel()
	address := os.Getenv("SONIQ_TEST_POSTGRES")
	if address == "" {
		t.Skip("SONIQ_TEST_POSTGRES names no PostgreSQL")
	}
	s := rig.Start(t, rig.Options{DB: pgtest.New(t, address), Flags: []string{"--transcriber", "off"}})
	newOffice(t, s).talk(time.Second)
	to := filepath.Join(t.TempDir(), "copy")
	says(t, s.Command("backup", "--to", to), "1 recordings", "pg_dump")
	if _, err := os.Stat(filepath.Join(to, "master.key")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(to, "soniq.db")); err == nil {
		t.Error("an SQLite database was copied")
	}
}
