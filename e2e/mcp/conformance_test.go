package mcp_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"soniq/e2e/rig"
)

// everything builds the binary with the additional tools that the official suite needs. SONIQ_E2E_EVERYTHING names a
// binary that is already built.
func everything(t *testing.T) string {
	t.Helper()
	if ready := os.Getenv("SONIQ_E2E_EVERYTHING"); ready != "" {
		return ready
	}
	path := filepath.Join(t.TempDir(), "soniq")
	build := exec.Command("go", "build", "-trimpath", "-tags", "conformance", "-o", path, "./cmd/soniq")
	build.Dir, build.Env = rig.Root(), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return path
}

const suite = "@modelcontextprotocol/conformance/dist/index.js"

// letIn starts a proxy in front of a server that adds a credential to the requests of clients without one.
func letIn(t *testing.T, s *rig.Server, key string) string {
	t.Helper()
	quiet := log.New(io.Discard, "", 0) // clients disconnect in the middle of a response
	next := &httputil.ReverseProxy{FlushInterval: -1, ErrorLog: quiet, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: s.HTTP})
		r.Out.Host = r.In.Host
		r.Out.Header.Set("Authorization", "Bearer "+key)
	}}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body) // reads the whole body, because net/http cuts off a response that begins before the request was read
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(b))
		next.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	return proxy.URL
}

// required holds the number of scenarios that each revision requires of a server.
var required = map[string]int{"2025-11-25": 30, "2026-07-28": 37}

// TestConformance_AllTools runs every scenario that a revision requires of a server against soniq's transports,
// authorization and middleware. The binary has the tools of the suite beside its own.
func TestConformance_AllTools(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Binary: everything(t)})
	at := letIn(t, s, s.Org("live").Key) + "/mcp/sse"
	for revision, many := range required {
		out := t.TempDir()
		text, err := script(t, suite, "server", "--url", at, "--requirements", revision, "--timeout", "120000", "-o", out).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", revision, err, text)
		}
		passed := 0
		for name, s := range scenarios(t, out) {
			if s.failed > 0 && !strings.HasPrefix(name, "tasks-") { // an extension that is not offered, nor scored
				t.Errorf("%s: %s: %s\n%s", revision, name, s.why, text)
			}
			if s.passed > 0 && s.failed == 0 {
				passed++
			}
		}
		if passed < many {
			t.Errorf("%s: %d scenarios passed, %d are required\n%s", revision, passed, many, text)
		}
	}
}

// TestConformance_ShippedBinary runs the scenarios that need no tools of the suite against the shipped binary.
func TestConformance_ShippedBinary(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{})
	at := letIn(t, s, s.Org("live").Key) + "/mcp/sse"
	for revision, names := range map[string][]string{
		"2025-11-25": {"server-initialize", "ping", "completion-complete", "tools-list", "resources-list", "prompts-list", "dns-rebinding-protection",
			"server-session-lifecycle"},
		"2026-07-28": {"completion-complete", "tools-list", "resources-list", "prompts-list", "dns-rebinding-protection", "caching",
			"sep-2164-resource-not-found", "http-header-validation"},
	} {
		out := t.TempDir()
		text, _ := script(t, suite, "server", "--url", at, "--requirements", revision, "--timeout", "120000", "-o", out).CombinedOutput() // scenarios that need other tools fail
		got := scenarios(t, out)
		for _, name := range names {
			if got[name].passed == 0 || got[name].failed > 0 {
				t.Errorf("%s: %s: %+v\n%s", revision, name, got[name], text)
			}
		}
	}
}

// TestConformance_AuthorizationServer runs the suite's scenarios for authorization servers. A user gives consent.
func TestConformance_AuthorizationServer(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{})
	ada := signedIn(t, s)
	out, port := t.TempDir(), free(t)
	c := script(t, suite, "authorization", "--url", "http://"+s.HTTP+"/auth", "--client-id", "soniq-assistant", "--port", port, "--resource", address(s), "-o", out)
	text, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := rig.Launch(c); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(text)
	var all strings.Builder
	for lines.Scan() {
		all.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(lines.Text(), "http://"+s.HTTP+"/auth/oauth/authorize?") {
			ada.letsIn(lines.Text())
		}
	}
	if err := c.Wait(); err != nil {
		t.Errorf("%v\n%s", err, all.String())
	}
	got := scenarios(t, out)
	for _, name := range []string{"authorization-server-metadata-endpoint", "authorization-code-grant"} {
		if got[name].passed == 0 || got[name].failed > 0 {
			t.Errorf("%s: %+v\n%s", name, got, all.String())
		}
	}
}

// checked counts the checks of a scenario that passed and failed.
type checked struct {
	passed, failed int
	why            string
}

// resultName matches the name of a result file, to extract the name of the scenario.
var resultName = regexp.MustCompile(`^(?:authorization-server-|authorization-|server-)?(.+?)-\d{4}-\d\d-\d\dT[\d-]+Z$`)

// scenarios returns the scenarios with results.
func scenarios(t *testing.T, dir string) map[string]checked {
	t.Helper()
	all := map[string]checked{}
	files, _ := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
	for _, f := range files {
		b, err := os.ReadFile(f)
		var checks []struct{ Status, ErrorMessage string }
		found := resultName.FindStringSubmatch(filepath.Base(filepath.Dir(f)))
		if err != nil || json.Unmarshal(b, &checks) != nil || found == nil {
			t.Fatalf("%s: %v %s", f, err, b)
		}
		s := all[found[1]]
		for _, c := range checks {
			switch c.Status {
			case "SUCCESS":
				s.passed++
			case "FAILURE":
				s.failed++
				s.why += c.ErrorMessage + "; "
			}
		}
		all[found[1]] = s
	}
	return all
}
