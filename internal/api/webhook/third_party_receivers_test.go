package webhook

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
)

// verified is the result of a Node receiver for one request.
type verified struct {
	Port     int
	ID       string
	Event    string
	Members  []string
	Contract bool
	Bytes    bool
	Standard bool
	Svix     bool
	Tampered bool
	Error    string
}

// startNode starts the receiver of e2e/node. Its results arrive on the channel.
func startNode(t *testing.T, secrets ...string) (url string, lines <-chan verified) {
	t.Helper()
	node, err := exec.LookPath("node")
	folder := filepath.Join("..", "..", "..", "e2e", "node")
	if _, missing := os.Stat(filepath.Join(folder, "node_modules")); err != nil || missing != nil {
		t.Fatal("node or its packages are missing; run scripts/setup test")
	}
	cmd := exec.Command(node, append([]string{"receiver.js"}, secrets...)...)
	cmd.Dir, cmd.Stderr = folder, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	seen := make(chan verified, 100)
	go func() {
		defer close(seen)
		for s := bufio.NewScanner(out); s.Scan(); {
			var v verified
			if json.Unmarshal(s.Bytes(), &v) == nil {
				seen <- v
			}
		}
	}()
	select {
	case first := <-seen:
		return fmt.Sprintf("http://127.0.0.1:%d/hooks", first.Port), seen
	case <-time.After(2 * time.Minute):
		t.Fatal("the receiver did not start")
		return "", nil
	}
}

// Third-party receivers accept every delivery: one written from the specification, which signs the result of
// JSON.stringify of the parsed body, and the libraries of Standard Webhooks and Svix.
func TestReceivers_ThirdPartyLibraries(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d, nil)
		h.run()
		id, secret := h.create("http://127.0.0.1:1/", nil)
		url, lines := startNode(t, secret)
		h.api.Do(admin(h), "PATCH", "/webhooks/"+id, map[string]any{"url": url}).Want(200)
		all := samples()
		all = append(all, event.CallMissed{CallID: "call_1", MissedReason: "<script>\u2028\u2029 \"\\u2028\" \x00\x1f\xff 😀 é & / \\", Contact: &event.Contact{Name: "\ud7ff\ufeff"}},
			event.SMSSent{MessageID: "sms_1", Metadata: event.Metadata{"10": "a", "9": "b", "b": "<", "a": "\u2029", "__proto__": "x"}})
		h.publish(all...)
		kinds := map[string]bool{}
		for range all {
			select {
			case v := <-lines:
				kinds[v.Event] = true
				if !v.Contract || !v.Bytes || !v.Standard || !v.Svix || v.Tampered || v.Error != "" ||
					fmt.Sprint(v.Members) != "[event data]" {
					t.Errorf("%+v", v)
				}
			case <-time.After(2 * time.Minute):
				t.Fatal("a delivery is missing")
			}
		}
		if len(kinds) != 12 {
			t.Errorf("%d kinds arrived", len(kinds))
		}
		eventually(t, "all are written down as accepted", func() bool { return h.open() == 0 })
		for _, d := range h.deliveries(id) {
			if d.Status != succeeded || d.Attempts != 1 {
				t.Errorf("%s: %s after %d attempts", d.Kind, d.Status, d.Attempts)
			}
		}
	})
}

// During a rotation, Standard Webhooks receivers that know the old secret, the new one, or both accept deliveries.
func TestReceivers_SecretRotation(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t), nil)
	h.run()
	id, old := h.create("http://127.0.0.1:1/", nil)
	fresh := h.api.Do(admin(h), "POST", "/webhooks/"+id+"/rotate-secret", nil).Want(200).Text("secret")
	for name, known := range map[string][]string{"old": {old}, "new": {fresh}, "both": {old, fresh}} {
		url, lines := startNode(t, known...)
		h.api.Do(admin(h), "PATCH", "/webhooks/"+id, map[string]any{"url": url}).Want(200)
		h.api.Do(admin(h), "POST", "/webhooks/"+id+"/test", nil).Want(200)
		if v := <-lines; !v.Standard || !v.Svix || v.Contract != (name != "old") || v.Tampered {
			t.Errorf("%s: %+v", name, v)
		}
	}
}
