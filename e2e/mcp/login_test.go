package mcp_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// bridges returns both programs that connect a desktop to the tools: the npm package as installed from its tarball,
// and the binary.
func bridges(t *testing.T) map[string][]string {
	t.Helper()
	binary, err := rig.CommandBinary()
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]string{"soniq-mcp": {installed(t)}, "soniq mcp": {binary, "mcp"}}
}

// desk is a user's computer with one of the bridges on it.
type desk struct {
	t       *testing.T
	server  *rig.Server
	words   []string
	home    string // folder of stored logins
	browser string // file with the address opened in the browser
}

func newDesk(t *testing.T, s *rig.Server, words []string) *desk {
	t.Helper()
	d := &desk{t: t, server: s, words: words, home: filepath.Join(t.TempDir(), "logins")}
	d.browser = filepath.Join(t.TempDir(), "shown")
	if err := os.WriteFile(d.browser+".sh", []byte("#!/bin/sh\nprintf %s \"$1\" >'"+d.browser+".next' && mv '"+d.browser+".next' '"+d.browser+"'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return d
}

// command returns the bridge with an action and flags, without a key.
func (d *desk) command(more ...string) *exec.Cmd {
	all := append(slices.Clone(d.words[1:]), more...)
	c := exec.Command(d.words[0], append(all, "--url", address(d.server))...)
	c.Env = append(slices.DeleteFunc(os.Environ(), func(e string) bool {
		return strings.HasPrefix(e, "SONIQ_") && !strings.HasPrefix(e, "SONIQ_E2E") || strings.HasPrefix(e, "DISPLAY=")
	}), "SONIQ_MCP_HOME="+d.home, "BROWSER="+d.browser+".sh")
	return c
}

// says runs an action to its end, and returns its output.
func (d *desk) says(good bool, more ...string) string {
	d.t.Helper()
	out, err := d.command(more...).CombinedOutput()
	if (err == nil) != good {
		d.t.Fatalf("%v: %v: %s", more, err, out)
	}
	return string(out)
}

// login is a login in progress that waits for the user.
type login struct {
	t       *testing.T
	command *exec.Cmd
	address *url.URL
	in      io.WriteCloser
	wrote   bytes.Buffer // to standard error
	ended   chan error
}

// begin starts a login, and waits for the address it prints.
func (d *desk) begin(more ...string) *login {
	d.t.Helper()
	l := &login{t: d.t, command: d.command(append([]string{"login"}, more...)...), ended: make(chan error, 1)}
	out, err := l.command.StdoutPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	if l.in, err = l.command.StdinPipe(); err != nil {
		d.t.Fatal(err)
	}
	l.command.Stderr = &l.wrote
	if err := rig.Launch(l.command); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = l.command.Process.Kill() })
	printed := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if text := strings.TrimSpace(lines.Text()); strings.HasPrefix(text, "http") {
				printed <- text
			}
		}
		l.ended <- l.command.Wait()
	}()
	if l.address, err = url.Parse(await(d.t, "the address of the login", printed)); err != nil {
		d.t.Fatal(err)
	}
	return l
}

// answer returns the redirect address with the parameters; a state of "" is the correct one.
func (l *login) answer(state string, more ...string) string {
	q := l.address.Query()
	if state == "" {
		state = q.Get("state")
	}
	back := url.Values{"state": {state}}
	for i := 0; i+1 < len(more); i += 2 {
		back.Set(more[i], more[i+1])
	}
	return q.Get("redirect_uri") + "?" + back.Encode()
}

// leads opens a redirect address, as a browser does, and returns the status of the page.
func (l *login) leads(to string) int {
	l.t.Helper()
	r, err := (&http.Client{Timeout: patience}).Get(to)
	if err != nil {
		l.t.Fatal(err)
	}
	_ = r.Body.Close()
	return r.StatusCode
}

// login completes a login: the user gives consent.
func (d *desk) login(p *person, more ...string) {
	d.t.Helper()
	l := d.begin(more...)
	p.allow(l.address.String())
	if err := await(d.t, "the end of the login", l.ended); err != nil {
		d.t.Fatalf("login: %v: %s", err, l.wrote.String())
	}
}

// file returns the file with the login, or "" if there is none.
func (d *desk) file() string {
	all, _ := filepath.Glob(filepath.Join(d.home, "*"))
	if len(all) > 1 {
		d.t.Errorf("more than the login is kept: %v", all)
	}
	return strings.Join(all, "")
}

// kept returns the content of the file.
func (d *desk) kept() map[string]any {
	d.t.Helper()
	b, err := os.ReadFile(d.file())
	var kept map[string]any
	if err != nil || json.Unmarshal(b, &kept) != nil {
		d.t.Fatalf("%v in %s", err, b)
	}
	return kept
}

// expire changes the expiry in the file, so that the bridges treat the token as expired.
func (d *desk) expire() {
	d.t.Helper()
	kept := d.kept()
	kept["expires_at"] = time.Now().Add(-time.Minute).UTC().Format(time.RFC3339)
	b, _ := json.Marshal(kept)
	if err := os.WriteFile(d.file(), b, 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// posts sends a form to an endpoint of the authorization server.
func (d *desk) posts(path string, form url.Values) int {
	d.t.Helper()
	r, err := (&http.Client{Timeout: patience}).PostForm("http://"+d.server.HTTP+"/auth/oauth/"+path, form)
	if err != nil {
		d.t.Fatal(err)
	}
	_ = r.Body.Close()
	return r.StatusCode
}

func text1(v any) string { s, _ := v.(string); return s }

func TestBridge_LoginInBrowser(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Flags: []string{"--transcriber", "off"}})
	all := bridges(t)
	for name, words := range all {
		t.Run(name, func(t *testing.T) {
			p, d := newPerson(t, s, strings.ReplaceAll(name, " ", ".")+".one@example.com"), newDesk(t, s, words)
			if told := d.says(false, "status"); !strings.Contains(told, "nobody is logged in") || !strings.Contains(told, " login --url ") {
				t.Errorf("before: %s", told)
			}
			l := d.begin()
			rig.Until(t, "the browser shows the address", patience, func() bool {
				shown, _ := os.ReadFile(d.browser)
				return string(shown) == l.address.String()
			})
			if q := l.address.Query(); q.Get("code_challenge_method") != "S256" || q.Get("resource") != address(s) || len(q.Get("state")) < 32 {
				t.Errorf("asked with %v", q)
			}
			if status := l.leads(l.answer("wrong", "code", "x", "iss", p.base+"/auth")); status != 400 {
				t.Errorf("an answer with another state: %d", status)
			}
			p.allow(l.address.String())
			if err := await(t, "the end of the login", l.ended); err != nil {
				t.Fatalf("login: %v: %s", err, l.wrote.String())
			}
			if i, err := os.Stat(d.file()); err != nil || i.Mode().Perm() != 0o600 {
				t.Errorf("the login is kept with %v, %v", i, err)
			}
			over(t, d.command()).want("get_live_calls", nil)
			for _, action := range []string{"status", "doctor"} {
				if told := d.says(true, action); !strings.Contains(told, "10 tools") || !strings.Contains(told, "calls:read contacts:read memory:read") || strings.Contains(told, "FAIL") {
					t.Errorf("%s: %s", action, told)
				}
			}
			if err := os.Chmod(d.file(), 0o644); err != nil {
				t.Fatal(err)
			}
			if told := d.says(false, "doctor"); !strings.Contains(told, "chmod 600") {
				t.Errorf("doctor on a file that others read: %s", told)
			}
		})
	}
}

func TestBridge_WrongAnswerKeepsNothing(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Flags: []string{"--transcriber", "off"}})
	iss := "http://" + s.HTTP + "/auth"
	for name, words := range bridges(t) {
		d := newDesk(t, s, words)
		for what, answer := range map[string][]string{"who answers is another": {"code", "soniq_ac_x", "iss", "https://evil.example"}, "nobody says who answers": {"code", "x"},
			"a code of nobody": {"code", "soniq_ac_x", "iss", iss}, "no code": {"iss", iss}, "the person refuses": {"error", "access_denied", "iss", iss}} {
			l := d.begin("--no-browser")
			if status := l.leads(l.answer("", answer...)); status != 400 {
				t.Errorf("%s: %s: the browser is shown %d", name, what, status)
			}
			if err := await(t, "the end of the login", l.ended); err == nil || d.file() != "" {
				t.Errorf("%s: %s: ended with %v, kept %q", name, what, err, d.file())
			}
		}
		l := d.begin("--no-browser") // pasted from a browser on another machine
		_, _ = io.WriteString(l.in, l.answer("", "error", "access_denied", "iss", iss)+"\n")
		if err := await(t, "the end of the login", l.ended); err == nil || !strings.Contains(l.wrote.String(), "you did not allow it") {
			t.Errorf("%s: a pasted answer: %v, %s", name, err, l.wrote.String())
		}
	}
}

func TestBridge_SharedRenewalAndLogout(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Flags: []string{"--transcriber", "off"}})
	all := bridges(t)
	for name, words := range all {
		t.Run("logged in by "+name, func(t *testing.T) {
			p, d := newPerson(t, s, strings.ReplaceAll(name, " ", ".")+".two@example.com"), newDesk(t, s, words)
			d.login(p)
			var open []*assistant
			for _, words := range all {
				other := *d
				other.words = words
				open = append(open, over(t, d.command()), over(t, other.command()))
			}
			everywhere := func(what string) {
				t.Helper()
				var at sync.WaitGroup
				for _, a := range open {
					at.Go(func() {
						if r, err := a.call("get_live_calls", nil); err != nil || r.IsError {
							t.Errorf("%s: %v", what, err)
						}
					})
				}
				at.Wait()
			}
			for range 2 {
				before := d.kept()
				d.expire()
				everywhere("after the token's time")
				if d.kept()["refresh_token"] == before["refresh_token"] {
					t.Error("nothing was renewed")
				}
			}
			if status := d.posts("revoke", url.Values{"token": {text1(d.kept()["access_token"])}}); status != 200 {
				t.Fatalf("revoke: %d", status)
			}
			everywhere("after the server refused the token")
			d.stepUp(p, open)
			d.ends(open)
		})
	}
}

// stepUp gives consent to more scopes while assistants are connected.
func (d *desk) stepUp(p *person, open []*assistant) {
	d.t.Helper()
	for _, a := range open {
		_, err := a.call("add_call_note", map[string]any{"call_id": "call_none", "body": "x"})
		if err == nil || !strings.Contains(err.Error(), "the person has to allow it") || !strings.Contains(err.Error(), `--scopes "calls:read calls:write contacts:read memory:read"`) {
			d.t.Errorf("a tool that was not allowed: %v", err)
		}
	}
	d.login(p, "--scopes", "calls:read,calls:write")
	for _, a := range open {
		if code := a.refused("add_call_note", map[string]any{"call_id": "call_none", "body": "x"}); code != "not_found" {
			d.t.Errorf("after it was allowed: %s", code)
		}
	}
}

// ends logs out. Connected assistants, the access token and the refresh token stop working.
func (d *desk) ends(open []*assistant) {
	d.t.Helper()
	before := d.kept()
	if told := d.says(true, "logout"); !strings.Contains(told, "revoked") || d.file() != "" {
		d.t.Errorf("logout: %s; kept %q", told, d.file())
	}
	for _, a := range open {
		if _, err := a.call("get_live_calls", nil); err == nil || !strings.Contains(err.Error(), "nobody is logged in") {
			d.t.Errorf("after logout: %v", err)
		}
	}
	if r := post(d.t, address(d.server), text1(before["access_token"]), initialize); r.status != 401 {
		d.t.Errorf("the access token after logout: %d", r.status)
	}
	if status := d.posts("token", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {text1(before["refresh_token"])}, "client_id": {"soniq-assistant"}}); status != 400 {
		d.t.Errorf("the refresh token after logout: %d", status)
	}
	if told := d.says(true, "logout"); !strings.Contains(told, "nobody was logged in") {
		d.t.Errorf("logout again: %s", told)
	}
}
