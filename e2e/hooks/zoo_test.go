// Package hooks_test delivers the webhooks of the running binary to third-party receivers.
package hooks_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }

// seen is the report of the receiver in Node about a request: the rules that accept it.
type seen struct {
	Port            int
	Path, ID, Event string
	At              int64 // milliseconds
	Attempt         int
	Contract, Bytes bool
	Standard, Svix  bool
	Tampered        bool
	Error           string
}

// node is a receiver made of plain Node and two libraries for webhooks.
type node struct {
	url string
	mu  sync.Mutex // guards all
	all []seen
}

func startNode(t *testing.T, secrets ...string) *node {
	t.Helper()
	folder := filepath.Join(rig.Root(), "e2e", "node")
	if _, err := os.Stat(filepath.Join(folder, "node_modules", "svix")); err != nil {
		t.Skip("needs npm ci in e2e/node; scripts/setup test does it")
	}
	c := exec.Command("node", append([]string{"receiver.js"}, secrets...)...)
	c.Dir, c.Stderr = folder, os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := rig.Launch(c); err != nil {
		t.Fatal(err)
	}
	n, port, done := &node{}, make(chan int, 1), make(chan struct{})
	t.Cleanup(func() { _ = in.Close(); <-done; _ = c.Wait() })
	go func() {
		defer close(done)
		for s := bufio.NewScanner(out); s.Scan(); {
			var x seen
			if json.Unmarshal(s.Bytes(), &x) != nil {
				continue
			}
			if x.Port != 0 {
				port <- x.Port
				continue
			}
			n.mu.Lock()
			n.all = append(n.all, x)
			n.mu.Unlock()
		}
	}()
	select {
	case p := <-port:
		n.url = fmt.Sprintf("http://127.0.0.1:%d", p)
	case <-time.After(limit.Hang(0)):
		t.Fatal("the receiver in Node did not start")
	}
	return n
}

// at lists the requests to a path.
func (n *node) at(path string) (all []seen) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, x := range n.all {
		if x.Path == path {
			all = append(all, x)
		}
	}
	return all
}

// delivery is a delivery of the API's log.
type delivery struct {
	ID, Status, Body string
	EventID          string `json:"event_id"`
	Attempts         []struct {
		N              int
		DurationMS     int     `json:"duration_ms"`
		ResponseStatus *int    `json:"response_status"`
		ResponseBody   *string `json:"response_body"`
		Error          *string
	}
}

// only returns the one delivery of a webhook.
func only(c *rig.Client, webhook string) (d delivery) {
	var log struct{ Data []delivery }
	c.Want(200, "GET", "/webhooks/"+webhook+"/deliveries", nil, &log)
	if len(log.Data) == 1 {
		c.Want(200, "GET", "/webhooks/"+webhook+"/deliveries/"+log.Data[0].ID, nil, &d)
	}
	return d
}

// Receivers that answer in every way are served according to the retry rules. Their server verifies each request by
// the published rule, over its bytes, with standardwebhooks and with svix.
func TestDelivery_EveryReceiverBehaviour(t *testing.T) {
	rig.Either(t, rig.Options{Flags: []string{"--transcriber", "off"}}, func(t *testing.T, s *rig.Server) {
		c := s.Org("test")
		manners := []struct {
			path     string
			status   string
			attempts int
			first    string // the error of the first attempt
			webhook  string // its status in the end
			apart    time.Duration
		}{
			{"/200", "succeeded", 1, "", "active", 0},
			{"/500/200", "succeeded", 2, "status", "active", 4 * time.Second},
			{"/410", "discarded", 1, "status", "disabled", 0},
			{"/later/200", "succeeded", 2, "status", "active", 8 * time.Second},
			{"/slow", "succeeded", 1, "", "active", 0},
			{"/hang/200", "succeeded", 2, "timeout", "active", 4 * time.Second},
			{"/reset/200", "succeeded", 2, "connect", "active", 4 * time.Second},
			{"/redirect/200", "succeeded", 2, "redirect", "active", 4 * time.Second},
			{"/huge", "succeeded", 1, "", "active", 0},
			{"/abort", "discarded", 1, "status", "active", 0},
			{"/401/200", "succeeded", 2, "signature_rejected", "active", 4 * time.Second},
		}
		ids, secrets := make([]string, len(manners)), make([]string, len(manners))
		for i := range manners {
			var w struct{ ID, Secret string }
			c.Want(201, "POST", "/webhooks", map[string]any{"url": "http://127.0.0.1:9/", "events": []string{"call.ended"}, "timeout_seconds": 2}, &w)
			ids[i], secrets[i] = w.ID, w.Secret
		}
		n := startNode(t, secrets...)
		for i, m := range manners {
			c.Want(200, "PATCH", "/webhooks/"+ids[i], map[string]any{"url": n.url + m.path}, nil)
		}
		c.Want(202, "POST", "/sandbox/events/trigger", map[string]any{"event": "call.ended",
			"data": map[string]any{"ai_summary": "quotes \" <b>&</b> \u2028 é 👍 \\u2028 \n"}}, nil)
		for i, m := range manners {
			t.Run(m.path, func(t *testing.T) {
				var d delivery
				rig.Until(t, m.path+" is "+m.status, 60*time.Second, func() bool { d = only(c, ids[i]); return d.Status == m.status })
				got := n.at(m.path)
				if len(d.Attempts) != m.attempts || len(got) != m.attempts {
					t.Fatalf("%d attempts in the log, %d requests, want %d", len(d.Attempts), len(got), m.attempts)
				}
				for k, x := range got {
					if !x.Contract || !x.Bytes || !x.Standard || !x.Svix || x.Tampered || x.Error != "" {
						t.Errorf("request %d: %+v", k+1, x)
					}
					if x.ID != d.EventID || x.Attempt != k+1 || x.Event != "call.ended" {
						t.Errorf("request %d: %+v, want attempt %d of %s", k+1, x, k+1, d.EventID)
					}
				}
				if fault := d.Attempts[0].Error; (fault == nil) != (m.first == "") || fault != nil && *fault != m.first {
					t.Errorf("first attempt %+v, want error %q", d.Attempts[0], m.first)
				}
				if m.attempts > 1 && time.Duration(got[1].At-got[0].At)*time.Millisecond < m.apart {
					t.Errorf("tried again after %d ms, want %s at least", got[1].At-got[0].At, m.apart)
				}
				var w struct{ Status string }
				if c.Want(200, "GET", "/webhooks/"+ids[i], nil, &w); w.Status != m.webhook {
					t.Errorf("the webhook is %s, want %s", w.Status, m.webhook)
				}
			})
		}
		if len(n.at("/redirected")) > 0 {
			t.Error("a redirect was followed")
		}
	})
}
