package demo

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
)

// receiver is a customer's webhook server: it checks the signature of every request and prints the event.
type receiver struct {
	demo     *demo
	server   *http.Server
	url      string
	finished chan string // ids of ended calls

	mu     sync.Mutex // guards secret
	secret string
}

func newReceiver(ctx context.Context, d *demo) (*receiver, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &receiver{demo: d, url: "http://" + l.Addr().String() + "/hook", finished: make(chan string, 8)}
	r.server = &http.Server{Handler: r, BaseContext: func(net.Listener) context.Context { return ctx }}
	go func() { _ = r.server.Serve(l) }()
	return r, nil
}

func (r *receiver) close() { _ = r.server.Close() }

// register subscribes to all events. The response has the secret, which the API returns only once.
func (r *receiver) register(ctx context.Context, api *client) error {
	var w struct{ ID, Secret string }
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := api.do(ctx, "POST", "/webhooks", map[string]any{"url": r.url, "events": []string{"*"}}, &w); err != nil {
		return fmt.Errorf("register webhook: %w", err)
	}
	r.secret = w.Secret
	r.demo.say("api", "POST /webhooks: %s receives all events", w.ID)
	return nil
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(io.LimitReader(q.Body, 1<<20))
	if err != nil {
		http.Error(w, "unreadable", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	mac := hmac.New(sha256.New, []byte(r.secret))
	r.mu.Unlock()
	mac.Write(body)
	if !hmac.Equal([]byte(hex.EncodeToString(mac.Sum(nil))), []byte(q.Header.Get("x-service-signature"))) {
		r.demo.say("webhook", "REFUSED: the signature is wrong")
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	r.show(body)
}

// show prints an event in one line.
func (r *receiver) show(body []byte) {
	var e struct {
		Event string
		Data  map[string]any
	}
	if json.Unmarshal(body, &e) != nil {
		return
	}
	text := ""
	switch e.Event {
	case "user.created":
		text = fmt.Sprintf("%v", e.Data["name"])
	case "call.started":
		text = fmt.Sprintf("%v calls %v", e.Data["from_number"], e.Data["to_number"])
	case "call.answered":
		text = fmt.Sprintf("%v answered after %v s", e.Data["agent_name"], e.Data["ring_seconds"])
	case "call.recording":
		text = fmt.Sprintf("%v, %v s, %v channels", e.Data["status"], e.Data["duration_seconds"], e.Data["channels"])
	case "call.transcription":
		text = fmt.Sprintf("transcript %v, summary %v", e.Data["status"], e.Data["summary_status"])
	case "call.ended":
		text = fmt.Sprintf("%v, %v s of talk", e.Data["status"], e.Data["talk_duration_seconds"])
	}
	r.demo.say("webhook", "%-18s signature verified  %s", e.Event, text)
	if id, _ := e.Data["call_id"].(string); e.Event == "call.ended" {
		r.finished <- id
	}
}

// waitForEnd waits for call.ended and returns the id of the call.
func (r *receiver) waitForEnd(ctx context.Context) (string, error) {
	select {
	case id := <-r.finished:
		return id, nil
	case <-ctx.Done():
		return "", errors.New("call.ended did not arrive")
	}
}
