package command_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// local is a developer's server. It checks signatures by the published rules, without code of soniq.
type local struct {
	*httptest.Server
	secret string
	mu     sync.Mutex // guards the two below
	got    []http.Header
	bodies []string
	answer func(n int) int
}

func newLocal(t *testing.T, secret string) *local {
	t.Helper()
	l := &local{secret: secret}
	l.Server = httptest.NewServer(l)
	t.Cleanup(l.Close)
	return l
}

func (l *local) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.got, l.bodies = append(l.got, r.Header), append(l.bodies, string(body))
	sum := func(key []byte, text string) []byte {
		m := hmac.New(sha256.New, key)
		_, _ = m.Write([]byte(text))
		return m.Sum(nil)
	}
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(l.secret, "whsec_"))
	standard := "v1," + base64.StdEncoding.EncodeToString(sum(key, r.Header.Get("webhook-id")+"."+r.Header.Get("webhook-timestamp")+"."+string(body)))
	if r.Header.Get("x-service-signature") != hex.EncodeToString(sum([]byte(l.secret), string(body))) || r.Header.Get("webhook-signature") != standard {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if l.answer != nil {
		w.WriteHeader(l.answer(len(l.got)))
	}
}

func (l *local) list() ([]http.Header, []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]http.Header(nil), l.got...), append([]string(nil), l.bodies...)
}

// environment returns the variables with the server's address and the key for a command.
func environment(c *rig.Client) []string {
	return []string{"SONIQ_URL=http://" + c.Server.HTTP, "SONIQ_KEY=" + c.Key}
}

var kinds = strings.Fields(`call.started call.answered call.ended call.missed call.recording call.transcription voicemail.received
	sms.received sms.sent user.created number.allocated queue.call_waiting`)

// soniq listen forwards the same requests to this machine that a webhook of the organisation gets: the same ids,
// bytes and headers, signed.
func TestListen_SameAsWebhook(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Flags: []string{"--transcriber", "off"}})
	c := s.Org("test")
	env := environment(c)
	hook := c.Hook(nil)
	secret := soniq(t, env, "listen", "--print-secret")
	again := soniq(t, env, "listen", "--print-secret")
	if secret.code != 0 || !strings.HasPrefix(secret.out, "whsec_") || secret.out != again.out {
		t.Fatalf("secret %+v, then %+v", secret, again)
	}
	mine := newLocal(t, strings.TrimSpace(secret.out))
	l := launch(t, env, "forwarding to", "listen", "--forward-to", mine.URL+"/hook", "--header", "X-Team: blue", "--count", "12")
	for _, kind := range kinds {
		if r := soniq(t, env, "trigger", kind); r.code != 0 || !strings.HasPrefix(r.out, kind+" told as evt_") {
			t.Fatalf("trigger %s: %+v", kind, r)
		}
		says(t, l.line(kind), "→ 200 OK", " ms", "evt_")
	}
	if code := l.wait(); code != 0 {
		t.Errorf("exit %d: %s", code, l.said())
	}
	says(t, l.said(), "listening to the sandbox of ", secret.out)
	rig.Until(t, "the webhook was told too", 20*time.Second, func() bool { return len(hook.Events()) == len(kinds) })
	got, bodies := mine.list()
	byID := map[string]rig.Event{}
	for _, e := range hook.Events() {
		byID[e.Header.Get("webhook-id")] = e
	}
	for i, h := range got {
		e, ok := byID[h.Get("webhook-id")]
		if !ok || e.Body != bodies[i] || e.Event != kinds[i] {
			t.Errorf("%s: forwarded %s, the webhook got %s", kinds[i], bodies[i], e.Body)
		}
		for _, name := range []string{"x-service-event", "x-service-sequence", "x-service-attempt", "content-type", "user-agent"} {
			if h.Get(name) == "" || h.Get(name) != e.Header.Get(name) {
				t.Errorf("%s of %s: %q, the webhook got %q", name, kinds[i], h.Get(name), e.Header.Get(name))
			}
		}
		if h.Get("x-team") != "blue" || h.Get("x-service-delivery") == "" {
			t.Errorf("headers %v", h)
		}
	}
}

// After the server was killed and started again, soniq listen resumes at its position: no event is missing, none
// comes twice. A refused event is shown.
func TestListen_ResumesAfterKill(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Flags: []string{"--transcriber", "off", "--http", fmt.Sprintf("127.0.0.1:%d", rig.FreePort(t))}})
	c := s.Org("test")
	env := environment(c)
	mine := newLocal(t, strings.TrimSpace(soniq(t, env, "listen", "--print-secret").out))
	mine.answer = func(n int) int { return map[bool]int{true: 503, false: 200}[n == 2] }
	l := launch(t, env, "forwarding to", "listen", "--forward-to", mine.URL, "--events", "call.missed,user.created", "--json")
	s.Kill() // before the first event: the command knows the position of the stream nevertheless
	s.Start()
	trigger := func(kind string) (id string) {
		var e struct{ ID string }
		if r := soniq(t, env, "trigger", kind, "--json"); r.code != 0 || json.Unmarshal([]byte(r.out), &e) != nil {
			t.Fatalf("trigger: %+v", r)
		}
		return e.ID
	}
	want := []string{trigger("call.missed"), trigger("user.created")}
	trigger("call.ended") // not asked for
	says(t, l.line(want[0]), `"status":200`, `"event":"call.missed"`, `"body":{"event":"call.missed"`)
	says(t, l.line(want[1]), `"status":503`)
	s.Kill()
	s.Start()
	want = append(want, trigger("call.missed"))
	says(t, l.line(want[2]), `"status":200`)
	if code := l.end(); code != 0 {
		t.Errorf("Ctrl-C ends it with %d", code)
	}
	says(t, l.said(), "the stream was lost")
	got, _ := mine.list()
	if len(got) != len(want) {
		t.Errorf("%d events came, want %d", len(got), len(want))
	}
	for i, h := range got {
		if h.Get("webhook-id") != want[i] {
			t.Errorf("event %d is %s, want %s", i, h.Get("webhook-id"), want[i])
		}
	}
	all := soniq(t, env, "listen", "--after", "0", "--count", "4", "--json")
	if all.code != 0 || strings.Count(all.out, "\n") != 4 {
		t.Errorf("from the beginning: %+v", all)
	}
}

// Beside a running server the command needs no key: it gets a temporary one, and deletes it at its end.
func TestListen_TemporaryKey(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Flags: []string{"--transcriber", "off"}})
	c := s.Org("live")
	soniq(t, nil, "trigger", "call.ended", "--data", s.Data).refusedWith(t, 1, "several organisations", c.Org)
	here := []string{"--data", s.Data, "--org", c.Org}
	secret := soniq(t, nil, append([]string{"listen", "--print-secret"}, here...)...).out
	mine := newLocal(t, strings.TrimSpace(secret))
	l := launch(t, nil, "forwarding to", append([]string{"listen", "--forward-to", mine.URL, "--count", "1"}, here...)...)
	if r := soniq(t, nil, append([]string{"trigger", "sms.received"}, here...)...); r.code != 0 {
		t.Errorf("trigger: %+v", r)
	}
	says(t, l.line("sms.received"), "200 OK")
	if l.wait() != 0 {
		t.Error(l.said())
	}
	soniq(t, nil, append([]string{"trigger", "sms.received", "--env", "live"}, here...)...).refusedWith(t, 2, "sandbox only")
	var keys struct {
		Data []struct {
			Name      string
			RevokedAt *string `json:"revoked_at"`
			ExpiresAt *string `json:"expires_at"`
		}
	}
	c.Want(200, "GET", "/api-keys?limit=200", nil, &keys)
	borrowed := 0
	for _, k := range keys.Data {
		if strings.HasPrefix(k.Name, "command line, ") {
			if borrowed++; k.RevokedAt == nil || k.ExpiresAt == nil {
				t.Errorf("a borrowed key still works: %+v", k)
			}
		}
	}
	if borrowed < 4 {
		t.Errorf("%d borrowed keys, want one for each command", borrowed)
	}
}
