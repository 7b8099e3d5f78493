package rig

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Trytond is a Tryton server with its module party, on SQLite.
type Trytond struct {
	*Daemon
	Database, User, Password string

	dir string
}

const trytondConfig = `[database]
uri = sqlite://
path = %[1]s
[web]
listen = %[2]s
[session]
timeout = 600
`

// StartTrytond starts a Tryton server, which takes half a minute.
func StartTrytond(t testing.TB) *Trytond {
	t.Helper()
	admin, err := exec.LookPath("trytond-admin")
	if err != nil {
		t.Skip("trytond is not installed")
	}
	d := &Trytond{Database: "crm", User: "admin", Password: "an admin's secret", dir: t.TempDir()}
	address, config, password := loopback(t), filepath.Join(d.dir, "trytond.conf"), filepath.Join(d.dir, "password")
	for name, text := range map[string]string{config: fmt.Sprintf(trytondConfig, d.dir, address), password: d.Password,
		filepath.Join(d.dir, "crm.sqlite"): ""} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run(t, "", "env", "TRYTONPASSFILE="+password, admin, "-c", config, "-d", d.Database, "--all", "--email", "admin@example.com")
	run(t, "", admin, "-c", config, "-d", d.Database, "-u", "party", "--activate-dependencies")
	d.Daemon = daemon(t, address, "trytond", "-c", config)
	return d
}

// Call calls a method as the administrator, and reads its result.
func (d *Trytond) Call(method string, to any, params ...any) {
	d.T.Helper()
	var login []any
	d.post("", "common.db.login", &login, []any{d.User, map[string]any{"password": d.Password}, "en"})
	key := base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%s:%v:%v", d.User, login[0], login[1]))
	d.post(key, method, to, append(params, map[string]any{}))
}

func (d *Trytond) post(key, method string, to any, params []any) {
	d.T.Helper()
	body, _ := json.Marshal(map[string]any{"id": 1, "method": method, "params": params})
	r, err := http.NewRequest("POST", "http://"+d.Address+"/"+d.Database+"/", bytes.NewReader(body))
	if err != nil {
		d.T.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Authorization", "Session "+key)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		d.T.Fatal(err)
	}
	defer answer.Body.Close()
	var out struct{ Result, Error json.RawMessage }
	if err := json.NewDecoder(answer.Body).Decode(&out); err != nil || out.Error != nil {
		d.T.Fatalf("%s: %d %v %s", method, answer.StatusCode, err, out.Error)
	}
	if err := json.Unmarshal(out.Result, to); err != nil {
		d.T.Fatal(err)
	}
}

// EndSessions ends the sessions of all users.
func (d *Trytond) EndSessions() {
	d.T.Helper()
	run(d.T, "", "python3", "-c", "import sqlite3,sys; c=sqlite3.connect(sys.argv[1],timeout=30); c.execute('DELETE FROM ir_session'); c.commit()",
		filepath.Join(d.dir, d.Database+".sqlite"))
}
