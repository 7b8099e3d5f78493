package command_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"soniq/e2e/rig"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/pgtest"
)

// commandsOnData are the commands that open the database of a data folder themselves.
var commandsOnData = [][]string{
	{"serve", "--http", "127.0.0.1:0", "--sip", "127.0.0.1:0", "--transcriber", "off"},
	{"migrate"}, {"migrate", "--status"},
	{"doctor", "--http", "127.0.0.1:0", "--sip", "127.0.0.1:0", "--transcriber", "off"},
	{"admin", "keys", "create", "--org", "org_x", "--scopes", "all"},
	{"admin", "orgs", "create", "--name", "Another"},
	{"admin", "outbound", "status"},
}

// allRefuse runs all commands. Each must fail, say the words, and change no file of the data folder.
func allRefuse(t *testing.T, data, address string, words ...string) {
	t.Helper()
	before := filesOf(t, data)
	all := append([][]string{{"backup", "--to", filepath.Join(t.TempDir(), "copy")}}, commandsOnData...)
	for _, c := range all {
		args := append(append([]string{}, c...), "--data", data)
		if address != "" {
			args = append(args, "--db", address)
		}
		r := soniq(t, nil, args...)
		if r.code != 1 {
			t.Errorf("%v: exit %d: %s%s", c, r.code, r.out, r.wrong)
		}
		says(t, r.out+r.wrong, words...)
	}
	if after := filesOf(t, data); after != before {
		t.Errorf("the data folder had %s, and has %s", before, after)
	}
}

// filesOf returns the names of the files in a data folder, except those that the lock and SQLite make.
func filesOf(t *testing.T, data string) string {
	t.Helper()
	all, err := os.ReadDir(data)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range all {
		if n := e.Name(); n != "lock" && !strings.HasSuffix(n, "-wal") && !strings.HasSuffix(n, "-shm") {
			names = append(names, n)
		}
	}
	return strings.Join(names, " ")
}

// eachDatabase runs a test with SQLite and, if it is there, with PostgreSQL. The address is empty for SQLite.
func eachDatabase(t *testing.T, run func(t *testing.T, address string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); run(t, "") })
	if pg := os.Getenv("SONIQ_TEST_POSTGRES"); pg != "" {
		t.Run("postgres", func(t *testing.T) { t.Parallel(); run(t, pgtest.New(t, pg)) })
	}
}

// change runs a statement on the database of a stopped server.
func change(t *testing.T, s *rig.Server, statement string, args ...any) {
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
	err = d.Tx(context.Background(), func(tx db.Querier) error {
		_, err := tx.Exec(context.Background(), statement, args...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// https://github.com/inmanta/inmanta-core/issues/1878
func TestCommands_DatabaseOfNewerVersion(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		s := rig.Start(t, rig.Options{DB: address, Flags: quick.Flags})
		s.Stop()
		change(t, s, `INSERT INTO migrations (name, applied_at) VALUES ('9876_later', 1)`)
		allRefuse(t, s.Data, address, "newer than this program", "9876_later", "restore the backup from before the upgrade")
		change(t, s, `DELETE FROM migrations WHERE name = '9876_later'`)
		s.Start()
	})
}

// https://github.com/OctopusDeploy/Issues/issues/173
func TestCommands_MasterKeyMissing(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		s := rig.Start(t, rig.Options{DB: address, Flags: quick.Flags})
		newOffice(t, s)
		s.Stop()
		key, other := filepath.Join(s.Data, "master.key"), filepath.Join(t.TempDir(), "key")
		if err := os.Rename(key, other); err != nil {
			t.Fatal(err)
		}
		allRefuse(t, s.Data, address, "master key", key, "is missing", "chmod 600 "+key)
		change(t, s, `DELETE FROM installation WHERE name = 'key_fingerprint'`) // as before this version
		allRefuse(t, s.Data, address, "master key", key, "is missing")
		if err := os.Rename(other, key); err != nil {
			t.Fatal(err)
		}
		s.Start()
	})
}

// https://github.com/OctopusDeploy/Issues/issues/173
func TestCommands_OtherMasterKey(t *testing.T) {
	t.Parallel()
	stranger := rig.Start(t, rig.Options{Flags: quick.Flags})
	stranger.Stop()
	wrong, err := os.ReadFile(filepath.Join(stranger.Data, "master.key"))
	if err != nil {
		t.Fatal(err)
	}
	eachDatabase(t, func(t *testing.T, address string) {
		s := rig.Start(t, rig.Options{DB: address, Flags: quick.Flags})
		newOffice(t, s)
		s.Stop()
		key := filepath.Join(s.Data, "master.key")
		right, err := os.ReadFile(key)
		if err != nil {
			t.Fatal(err)
		}
		write(t, key, wrong)
		allRefuse(t, s.Data, address, "master key", key, "another key")
		change(t, s, `DELETE FROM installation WHERE name = 'key_fingerprint'`) // as before this version
		allRefuse(t, s.Data, address, "master key", key, "another key")
		write(t, key, right)
		s.Start()
		s.Stop()
		write(t, key, wrong)
		allRefuse(t, s.Data, address, "another key") // the fingerprint was stored at the start
	})
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestServe_SecondNode starts a second node on the database of the first: without the key, with a key of its own, and with the right one.
func TestServe_SecondNode(t *testing.T) {
	t.Parallel()
	pg := os.Getenv("SONIQ_TEST_POSTGRES")
	if pg == "" {
		t.Skip("SONIQ_TEST_POSTGRES names no PostgreSQL")
	}
	s := rig.Start(t, rig.Options{DB: pgtest.New(t, pg), Flags: quick.Flags})
	o := newOffice(t, s)
	data := t.TempDir()
	key := filepath.Join(data, "master.key")
	allRefuse(t, data, s.DB, key, "is missing")
	right, err := os.ReadFile(filepath.Join(s.Data, "master.key"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, key, right)
	second := rig.Start(t, rig.Options{Data: data, DB: s.DB, Flags: quick.Flags})
	there := *o.Client
	there.Server = second
	there.Want(200, "GET", "/users", nil, nil)
}
