package flow

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

func TestCollect_MaskedDigits(t *testing.T) {
	t.Parallel()
	s := fixture.NewOrg(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))
	asked := &httpServer{answer: func(*http.Request, string) (int, string) { return 200, `{"known": true, "level": 7}` }}
	address := asked.start(t)
	pin, welcome := s.UploadTone(fixture.PinTone, time.Second), s.UploadTone(fixture.OtherTone, time.Second)
	f := s.AddFlow(
		fixture.Node("pin", "collect", map[string]any{"prompt": pin, "min": 4, "max": 6, "variable": "pin", "mask": true, "timeout_seconds": 2},
			"done", "ask", "timeout", "bye"),
		fixture.Node("ask", "http", map[string]any{"url": address + "/check?from={{caller.number}}&pin={{variables.pin}}", "variable": "answer", "signed": true}, "success", "level", "error", "bye"),
		fixture.Node("level", "condition", map[string]any{"expression": `variables.answer.known && variables.answer.level > 5`}, "true", "note", "false", "bye"),
		fixture.Node("note", "set", map[string]any{"variables": map[string]any{"who": "{{caller.number}}", "n": 3}}, "done", "told"),
		fixture.Node("told", "http", map[string]any{"url": address + "/told", "body": `{"who": "{{variables.who}}", "n": {{variables.n}}}`}, "success", "welcome", "error", "bye"),
		fixture.Node("welcome", "play", map[string]any{"audio_id": welcome}, "done", "bye"),
		fixture.Node("bye", "hangup", map[string]any{"reason": "said all"}))
	var hook struct{ Secret string }
	s.Want(201, "POST", "/webhooks", map[string]any{"url": address + "/hook", "events": []string{"sms.sent"}}, &hook)
	way := s.AddFlowCarrier(f)
	v := s.CallIn(way, "+12125550101")
	at := v.WaitTone(0, fixture.PinTone)
	v.Press("73519#")
	v.WaitTone(at, fixture.OtherTone)
	v.WaitEnd()
	all := asked.all()
	if len(all) != 2 || all[0].query != "from=%2B12125550101&pin=73519" || all[1].body != `{"who": "+12125550101", "n": 3}` {
		t.Fatalf("what the server was asked: %+v", all)
	}
	var told struct {
		CallID    string `json:"call_id"`
		Variables map[string]any
	}
	if err := json.Unmarshal([]byte(all[0].body), &told); err != nil || told.CallID == "" || len(told.Variables) != 0 {
		t.Errorf("body of the request: %s", all[0].body)
	}
	if got, want := all[0].header.Get("X-Service-Signature"), rig.Signature(hook.Secret, all[0].body); got != want {
		t.Errorf("signature %q, want %q", got, want)
	}
	r := s.CDR("+12125550101")
	got, _, timeline := s.FlowPath(r.CallID, "pin:done ask:success level:true note:done told:success welcome:done bye")
	if got != "pin:done ask:success level:true note:done told:success welcome:done bye" {
		t.Errorf("way of the caller: %s", got)
	}
	for _, where := range []string{timeline, string(s.Do("GET", "/calls/"+r.CallID, nil).Body), string(s.Do("GET", "/cdr/"+r.ID, nil).Body)} {
		if strings.Contains(where, "73519") {
			t.Errorf("the digits are told: %s", where)
		}
	}
	for _, e := range s.Webhook.Events() {
		if strings.Contains(e.Body, "73519") {
			t.Errorf("the digits are in an event: %s", e.Body)
		}
	}
	v = s.CallIn(way, "+12125550102")
	v.WaitTone(0, fixture.PinTone)
	v.Press("12")
	v.WaitEnd()
	if got, _, _ := s.FlowPath(s.CDR("+12125550102").CallID, "pin:timeout bye"); got != "pin:timeout bye" {
		t.Errorf("way of who pressed too little: %s", got)
	}
}

// A hash key directly after the last digit that a step takes belongs to it, and does not choose in the menu behind it.
// https://github.com/rapidpro/rapidpro/issues/134
func TestCollect_TerminatorAfterLastDigit(t *testing.T) {
	t.Parallel()
	s := fixture.NewOrg(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))
	pin, choice := s.UploadTone(fixture.PinTone, time.Second), s.UploadTone(fixture.OtherTone, time.Second)
	f := s.AddFlow(
		fixture.Node("pin", "collect", map[string]any{"prompt": pin, "min": 4, "max": 4, "variable": "pin", "timeout_seconds": 20},
			"done", "choice", "timeout", "bye"),
		fixture.Node("choice", "menu", map[string]any{"prompt": choice, "digits": map[string]any{"1": "one", "#": "hash"}, "timeout_seconds": 20},
			"1", "bye", "#", "bye", "timeout", "bye", "invalid", "bye"),
		fixture.Node("bye", "hangup", map[string]any{"reason": "done"}))
	way := s.AddFlowCarrier(f)
	v := s.CallIn(way, "+12125550101")
	at := v.WaitTone(0, fixture.PinTone)
	v.Press("1234#")
	v.WaitTone(at, fixture.OtherTone)
	v.Press("1")
	v.WaitEnd()
	const want = "pin:done choice:1 bye"
	if got, _, _ := s.FlowPath(s.CDR("+12125550101").CallID, want); got != want {
		t.Errorf("way of the caller: %s, want %s", got, want)
	}
}

// httpServer is the destination of HTTP requests of flows.
type httpServer struct {
	answer func(r *http.Request, body string) (int, string)

	mu   sync.Mutex // guards seen
	seen []httpRequest
}

// httpRequest is a request of a flow.
type httpRequest struct {
	path, query, body string
	header            http.Header
}

// start starts the server and returns its address.
func (x *httpServer) start(t *testing.T) string {
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var b strings.Builder
		buffer := make([]byte, 4096)
		for {
			n, err := r.Body.Read(buffer)
			b.Write(buffer[:n])
			if err != nil {
				break
			}
		}
		x.mu.Lock()
		x.seen = append(x.seen, httpRequest{r.URL.Path, r.URL.RawQuery, b.String(), r.Header.Clone()})
		x.mu.Unlock()
		status, body := x.answer(r, b.String())
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(h.Close)
	return h.URL
}

// all returns the requests so far.
func (x *httpServer) all() []httpRequest {
	x.mu.Lock()
	defer x.mu.Unlock()
	return append([]httpRequest(nil), x.seen...)
}

func TestHTTPNode_FailuresContinue(t *testing.T) {
	t.Parallel()
	s := fixture.NewOrg(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))
	release := make(chan struct{})
	asked := &httpServer{answer: func(r *http.Request, _ string) (int, string) {
		switch r.URL.Path {
		case "/slow":
			<-release
		case "/large":
			return 200, `"` + strings.Repeat("x", 70<<10) + `"`
		case "/moved":
			return 302, ""
		}
		return 500, "no"
	}}
	address := asked.start(t)
	t.Cleanup(func() { close(release) })
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	sorry := s.UploadTone(fixture.AgainTone, time.Second)
	next := func(id, to string) map[string]any {
		return map[string]any{"id": id, "type": "http", "config": map[string]any{"url": to, "timeout_ms": 500}, "next": map[string]string{"success": "bye", "error": ""}}
	}
	urls := []string{gone.URL, address + "/slow", address + "/large", address + "/moved", address + "/bad", "https://10.1.2.3/x", address + "/signed"}
	var nodes []map[string]any
	for i, u := range urls {
		n := next(string(rune('a'+i)), u)
		n["config"].(map[string]any)["signed"] = strings.HasSuffix(u, "/signed")
		to := string(rune('a' + i + 1))
		if i == len(urls)-1 {
			to = "sorry"
		}
		n["next"].(map[string]string)["error"] = to
		nodes = append(nodes, n)
	}
	way := s.AddFlowCarrier(s.AddFlow(append(nodes, fixture.Node("sorry", "play", map[string]any{"audio_id": sorry}, "done", "bye"), fixture.Node("bye", "hangup", nil))...))
	v := s.CallIn(way, "+12125550101")
	v.WaitTone(0, fixture.AgainTone)
	v.WaitEnd()
	got, steps, _ := s.FlowPath(s.CDR("+12125550101").CallID, "a:error b:error c:error d:error e:error f:error g:error sorry:done bye")
	if got != "a:error b:error c:error d:error e:error f:error g:error sorry:done bye" {
		t.Errorf("way of the caller: %s", got)
	}
	for i, want := range []string{"refused", "no answer in time", "64 KiB", "answered with 302", "answered with 500", "not allowed", "no webhook"} {
		if !strings.Contains(steps[i].Problem, want) || strings.Contains(steps[i].Problem, "127.0.0.1:") && i > 0 {
			t.Errorf("problem of %s: %q, want %q", steps[i].Node, steps[i].Problem, want)
		}
	}
}
