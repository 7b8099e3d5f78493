package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"soniq/internal/platform/db"
)

const (
	calleePort = 5070        // port at which sipp or the generator receives calls
	carrierIP  = "127.0.2.1" // address that calls come from
	did        = "+12025550123"
)

// platform is a running soniq with one organisation, a trunk, a number and a registered phone.
type platform struct {
	*process
	dir, data string
	http, sip string
	key, org  string
	extension string
	user      string
	login     struct{ Username, Password string }
	ready     time.Duration
}

var readyLine = regexp.MustCompile(`soniq is ready: http=(\S+) sip=(\S+)`)

// startPlatform starts the binary on an empty folder, or on an existing one.
func startPlatform(binary, dir string) (*platform, error) {
	p := &platform{dir: dir, data: filepath.Join(dir, "data")}
	began := time.Now()
	var err error
	p.process, err = start(dir, binary, "serve", "--data", p.data, "--http", "127.0.0.1:0", "--sip", "127.0.0.1:0", "--rtp-ports",
		"30000-59999",
		"--allow-targets", "127.0.0.0/8", "--log-level", "error", "--transcriber", "off", "--summarizer", "off", "--embedder", "off",
		"--max-calls", "20000", "--device-calls", "0", "--user-calls", "0", "--call-rate", "4000", "--rate-reads", "0", "--rate-writes", "0", "--rate-burst", "0", "--rate-searches",
		"0")
	if err != nil {
		return nil, err
	}
	limit := time.After(time.Minute)
	for p.http == "" {
		select {
		case line := <-p.lines:
			if found := readyLine.FindStringSubmatch(line); found != nil {
				p.http, p.sip, p.ready = found[1], found[2], time.Since(began)
			}
		case err := <-p.exited:
			return nil, fmt.Errorf("soniq ended: %v; see %s", err, dir)
		case <-limit:
			p.stop()
			return nil, fmt.Errorf("soniq was not ready within a minute; see %s", dir)
		}
	}
	return p, nil
}

// furnish creates the organisation, its trunk, number, user and phone.
func (p *platform) furnish(binary string) (err error) {
	if p.org, err = p.command_(binary, "admin", "orgs", "create", "--name", "Bench", "--country", "US"); err != nil {
		return err
	}
	if p.key, err = p.command_(binary, "admin", "keys", "create", "--org", p.org, "--scopes", "all"); err != nil {
		return err
	}
	var user struct {
		ID, Extension string
		SIP           struct{ Username, Password string }
	}
	var trunk struct{ ID string }
	for _, step := range []struct {
		method, path string
		in           any
		out          any
	}{
		{"PATCH", "/organization", map[string]any{"outbound": map[string]any{"calls_per_second": 10000, "concurrent_calls": 100000},
			"emergency": map[string]any{"acknowledged": true}}, nil},
		{"POST", "/users", map[string]any{"email": "ada@example.com", "first_name": "Ada"}, &user},
		{"POST", "/trunks", map[string]any{"name": "carrier", "host": carrierIP, "port": 5080,
			"inbound": map[string]any{"allowed_ips": []string{carrierIP}}}, &trunk},
	} {
		if err := p.api(step.method, step.path, step.in, step.out); err != nil {
			return err
		}
	}
	p.extension, p.user, p.login = user.Extension, user.ID, user.SIP
	if err := p.api("POST", "/numbers", map[string]any{"number": did, "trunk_id": trunk.ID, "user_id": user.ID}, nil); err != nil {
		return err
	}
	return p.record(false)
}

// record switches recording on or off for every call.
func (p *platform) record(on bool) error {
	mode := map[bool]string{true: "on", false: "off"}[on]
	return p.api("PATCH", "/organization", map[string]any{"recording": map[string]any{"mode": mode}}, nil)
}

func (p *platform) command_(binary string, args ...string) (string, error) {
	out, err := exec.Command(binary, append(args, "--data", p.data)...).Output()
	if err != nil {
		return "", fmt.Errorf("soniq %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// api sends a request to the REST API.
func (p *platform) api(method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	r, err := http.NewRequest(method, "http://"+p.http+"/api/v1"+path, body)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+p.key)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %d %s", method, path, answer.StatusCode, b)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(b, out)
}

// records counts the durable records of calls.
type records struct{ Calls, Ended, Events, Recordings int }

// durable counts the rows in the database itself, not through the server.
func (p *platform) durable() (r records, err error) {
	ctx := context.Background()
	d, err := db.Open(ctx, filepath.Join(p.data, "soniq.db"))
	if err != nil {
		return r, err
	}
	defer d.Close()
	for query, to := range map[string]*int{
		`SELECT count(*) FROM calls WHERE org_id = $1`:                            &r.Calls,
		`SELECT count(*) FROM calls WHERE org_id = $1 AND cdr_id IS NOT NULL`:     &r.Ended,
		`SELECT count(*) FROM events WHERE org_id = $1 AND kind LIKE 'call.%'`:    &r.Events,
		`SELECT count(*) FROM calls WHERE org_id = $1 AND recording_ready = TRUE`: &r.Recordings,
	} {
		if err := d.Read(ctx).QueryRow(ctx, query, p.org).Scan(to); err != nil {
			return r, err
		}
	}
	return r, nil
}

func temporary(name string) (string, error) { return os.MkdirTemp("", "soniq-bench-"+name+"-") }
