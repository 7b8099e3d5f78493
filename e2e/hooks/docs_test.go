package hooks_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// The example receivers of docs/webhooks.md run unchanged: they accept every kind of event, and refuse altered
// requests.
func TestGuide_ReceiversRun(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile(filepath.Join(rig.Root(), "docs", "webhooks.md"))
	if err != nil {
		t.Fatal(err)
	}
	s := rig.Shared(t, rig.Options{Flags: []string{"--transcriber", "off"}})
	c := s.Org("test")
	for _, x := range []struct {
		language, file string
		run            []string
	}{{"js", "hook.js", []string{"node"}}, {"python", "hook.py", []string{"python3"}}, {"go", "hook.go", []string{"go", "run"}}} {
		t.Run(x.language, func(t *testing.T) {
			code := regexp.MustCompile("(?s)```" + x.language + "\n(.*?)```").FindSubmatch(guide)
			if code == nil {
				t.Fatal("the guide shows no receiver")
			}
			path := filepath.Join(t.TempDir(), x.file)
			if err := os.WriteFile(path, code[1], 0o600); err != nil {
				t.Fatal(err)
			}
			var w struct{ ID, Secret string }
			address := fmt.Sprintf("127.0.0.1:%d", rig.FreePort(t))
			c.Want(201, "POST", "/webhooks", map[string]any{"url": "http://" + address + "/hook", "events": []string{"*"}}, &w)
			shown := start(t, append(x.run, path), "PORT="+address[strings.Index(address, ":")+1:], "WEBHOOK_SECRET="+w.Secret)
			rig.Until(t, "the receiver listens", time.Minute, func() bool {
				r, err := http.Post("http://"+address, "application/json", strings.NewReader(`{"event":"call.ended","data":{}}`))
				if err != nil {
					return false
				}
				_ = r.Body.Close()
				if r.StatusCode != http.StatusUnauthorized {
					t.Fatalf("it answers %d to what is not signed", r.StatusCode)
				}
				return true
			})
			for _, kind := range []string{"call.started", "call.ended", "sms.received", "user.created"} {
				var d delivery
				c.Want(200, "POST", "/webhooks/"+w.ID+"/test", map[string]any{"event": kind}, &d)
				if d.Status != "succeeded" {
					t.Errorf("%s: %+v", kind, d)
				}
				rig.Until(t, "it shows "+kind, 10*time.Second, func() bool {
					return strings.Contains(shown(), d.EventID) && strings.Contains(shown(), kind)
				})
			}
			c.Want(204, "DELETE", "/webhooks/"+w.ID, nil, nil)
		})
	}
}

// start runs a program until the test ends. The returned function returns its output so far.
func start(t *testing.T, command []string, env ...string) func() string {
	t.Helper()
	c := exec.Command(command[0], command[1:]...)
	path := filepath.Join(t.TempDir(), "out")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	c.Stdout, c.Stderr, c.Env = out, out, append(os.Environ(), env...)
	apart(c)
	if err := rig.Launch(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop(c)
		_ = out.Close()
	})
	return func() string {
		b, _ := os.ReadFile(path)
		return string(bytes.ToValidUTF8(b, nil))
	}
}
