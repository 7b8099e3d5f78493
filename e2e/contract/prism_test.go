package contract_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// Prism (@stoplight/prism-cli) is a proxy between newman and the server that validates every request and every
// response against the description. It finds no violation. With a deliberately wrong description it reports one.
func TestPrism_NoViolation(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	own := filepath.Join(t.TempDir(), "openapi.json")
	_, described := p.ask(t, "http://"+p.HTTP+"/openapi.json")
	write(t, own, described)
	strict := proxied(t, p, own)
	lying := proxied(t, p, lie(t, described))
	r := p.newman(t, p.collection(t, strict()+"/api/v1"))
	r.expect(t, 200)
	for _, e := range r.Run.Executions {
		for _, h := range e.Response.Header {
			if strings.EqualFold(h.Key, "sl-violations") {
				t.Errorf("%s: %s", e.Item.Name, h.Value)
			}
		}
	}
	for _, path := range []string{"/users", "/tags"} {
		status, said := p.ask(t, lying()+"/api/v1"+path)
		if found := status == 500 && strings.Contains(said, "VIOLATIONS"); found != (path == "/users") {
			t.Errorf("%s by a description that promises another type for users alone: %d %.300s", path, status, said)
		}
	}
	t.Logf("%d requests, %d of them succeed", len(r.Run.Executions), len(r.done()))
}

// ask sends a request with the key of the place.
func (p *place) ask(t *testing.T, url string) (status int, said string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+p.c.Key)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	line := bufio.NewReader(answer.Body)
	said, _ = line.ReadString('\x00')
	return answer.StatusCode, said
}

// lie writes a description in which the names of users are numbers.
func lie(t *testing.T, description string) string {
	t.Helper()
	var d map[string]any
	if err := json.Unmarshal([]byte(description), &d); err != nil {
		t.Fatal(err)
	}
	user := d["components"].(map[string]any)["schemas"].(map[string]any)["User"].(map[string]any)
	user["properties"].(map[string]any)["first_name"] = map[string]any{"type": "integer"}
	paths := map[string]any{}
	for _, path := range []string{"/api/v1/users", "/api/v1/tags"} {
		paths[path] = d["paths"].(map[string]any)[path]
	}
	d["paths"], d["webhooks"] = paths, map[string]any{}
	spoiled, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "openapi.json")
	write(t, path, string(spoiled))
	return path
}

// proxied starts a proxy that replaces violations by errors. The returned function waits for its address.
func proxied(t *testing.T, p *place, description string) (address func() string) {
	t.Helper()
	program := filepath.Join(modules(), ".bin", "prism")
	if _, err := os.Stat(program); err != nil {
		t.Skip("needs npm ci in e2e/node; scripts/setup test does it")
	}
	port := fmt.Sprint(rig.FreePort(t))
	c := exec.Command(program, "proxy", "--errors", "--verboseLevel", "silent", "--port", port, description, "http://"+p.HTTP)
	path := filepath.Join(t.TempDir(), "prism.log")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	c.Stdout, c.Stderr, c.SysProcAttr = out, out, &syscall.SysProcAttr{Setpgid: true}
	if err := rig.Launch(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		_ = c.Wait()
		_ = out.Close()
		if said, _ := os.ReadFile(path); t.Failed() {
			t.Logf("prism: %.2000s", said)
		}
	})
	return func() string {
		rig.Until(t, "the proxy listens", 90*time.Second, func() bool {
			answer, err := http.Get("http://127.0.0.1:" + port + "/api/v1/tags")
			if err != nil {
				return false
			}
			_ = answer.Body.Close()
			return true
		})
		return "http://127.0.0.1:" + port
	}
}
