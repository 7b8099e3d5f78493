package webhook

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
)

// firstAttempt publishes one event and returns its delivery and attempt when it is stored.
func (h *fixture) firstAttempt(id string) (*delivery, Attempt) {
	h.t.Helper()
	h.publish(event.CallMissed{CallID: "call_1"})
	eventually(h.t, "an attempt is written down", func() bool { all := h.deliveries(id); return len(all) == 1 && all[0].Attempts > 0 })
	d := h.deliveries(id)[0]
	all, err := listAttempts(context.Background(), h.cfg.DB.Read(context.Background()), h.org, d.ID)
	if err != nil || len(all) == 0 {
		h.t.Fatal(len(all), err)
	}
	return d, all[0]
}

func hijack(w http.ResponseWriter) net.Conn {
	c, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	return c
}

// Every kind of answer of a receiver, including none.
func TestReceivers_AllAnswers(t *testing.T) {
	t.Parallel()
	done := make(chan struct{})
	t.Cleanup(func() { close(done) })
	elsewhere := newReceiver(t, nil)
	for name, x := range map[string]struct {
		answer func(n int, w http.ResponseWriter, r *http.Request)
		status string
		fault  string
		code   int
		end    Status
		within int // timeout of the webhook in seconds; the longest if 0, as a busy machine answers late
	}{
		"204": {answer: status(204), status: succeeded, code: 204, end: Active},
		"slow 2xx body": {answer: func(_ int, w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
			select {
			case <-done:
			case <-r.Context().Done():
			}
		}, status: succeeded, code: 200, end: Active, within: 5},
		"404": {answer: status(404), status: retrying, fault: faultStatus, code: 404, end: Active},
		"401": {answer: status(401), status: retrying, fault: faultSignature, code: 401, end: Active},
		"410": {answer: status(410), status: discarded, fault: faultStatus, code: 410, end: Disabled},
		"429": {answer: func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(429)
		}, status: retrying, fault: faultStatus, code: 429, end: Active},
		"disable": {answer: func(_ int, w http.ResponseWriter, _ *http.Request) { w.Header().Set("webhook-delivery", "disable") },
			status: succeeded, code: 200, end: Disabled},
		"abort": {answer: func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("webhook-delivery", "abort-message")
			w.WriteHeader(500)
		}, status: discarded, fault: faultStatus, code: 500, end: Active},
		"redirect": {answer: func(_ int, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}, status: retrying, fault: faultRedirect, code: 307, end: Active},
		"hangs": {answer: func(_ int, _ http.ResponseWriter, r *http.Request) {
			select {
			case <-done:
			case <-r.Context().Done():
			}
		}, status: retrying, fault: faultTimeout, end: Active, within: 1},
		"resets": {answer: func(_ int, w http.ResponseWriter, _ *http.Request) {
			c := hijack(w)
			_ = c.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
		}, status: retrying, fault: faultConnect, end: Active},
		"no HTTP": {answer: func(_ int, w http.ResponseWriter, _ *http.Request) {
			c := hijack(w)
			_, _ = io.WriteString(c, "SSH-2.0-OpenSSH_9.2\r\n")
			_ = c.Close()
		}, status: retrying, fault: faultConnect, end: Active},
		"huge body": {answer: func(_ int, w http.ResponseWriter, _ *http.Request) {
			for range 100 {
				if _, err := io.WriteString(w, strings.Repeat("\x00\xffyes", 20_000)); err != nil {
					return
				}
			}
		}, status: succeeded, code: 200, end: Active},
		"huge header": {answer: func(_ int, w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("y", 1<<20)) },
			status: retrying, fault: faultConnect, end: Active},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newFixture(t, dbtest.SQLite(t), nil)
			h.run()
			r := newReceiver(t, x.answer)
			id, _ := h.create(r.URL, map[string]any{"timeout_seconds": cmp.Or(x.within, 30)})
			d, a := h.firstAttempt(id)
			fault, code := "", 0
			if a.Error != nil {
				fault = *a.Error
			}
			if a.ResponseStatus != nil {
				code = *a.ResponseStatus
			}
			if d.Status != x.status || fault != x.fault || code != x.code {
				t.Errorf("%s, error %q, response %d; want %s, %q, %d", d.Status, fault, code, x.status, x.fault, x.code)
			}
			if got := h.get("/webhooks/" + id).Text("status"); got != string(x.end) {
				t.Errorf("endpoint %s, want %s", got, x.end)
			}
			if a.ResponseBody != nil && (len(*a.ResponseBody) > maxStoredBody || strings.ContainsAny(*a.ResponseBody, "\x00\xff")) {
				t.Errorf("kept %d bytes: %.20q", len(*a.ResponseBody), *a.ResponseBody)
			}
			if name == "429" && d.NextAt.Sub(d.CreatedAt.Time) < 59*time.Minute {
				t.Errorf("next attempt after %s, want the hour it asked for", d.NextAt.Sub(d.CreatedAt.Time))
			}
		})
	}
	t.Cleanup(func() {
		if elsewhere.count() > 0 {
			t.Error("a redirect was followed")
		}
	})
}

// refusingAddress returns an address that refuses connections. Its port is in use until the test ends, so that no other test listens on it.
func refusingAddress(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil { // and does not listen
		t.Fatal(err)
	}
	a, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", a.(*syscall.SockaddrInet4).Port)
}

func TestReceivers_Unreachable(t *testing.T) {
	t.Parallel()
	strange := httptest.NewTLSServer(http.NotFoundHandler()) // its certificate is from an unknown authority
	t.Cleanup(strange.Close)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	for fault, url := range map[string]string{
		faultTLS:            strange.URL,
		faultTLS + " plain": strings.Replace(plain.URL, "http:", "https:", 1),
		faultConnect:        "http://" + refusingAddress(t),
		faultDNS:            "https://no-such-host.invalid/",
		faultBlocked:        "https://10.0.0.1/",
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			h := newFixture(t, dbtest.SQLite(t), nil)
			h.run()
			id, _ := h.create("https://example.com/", nil)
			err := h.cfg.DB.Tx(context.Background(), func(tx db.Querier) error { // bypasses the check at registration
				e, err := getEndpoint(context.Background(), tx, h.org, id)
				if err != nil {
					return err
				}
				e.URL = url
				return updateEndpoint(context.Background(), tx, e)
			})
			if err != nil {
				t.Fatal(err)
			}
			if d, a := h.firstAttempt(id); a.Error == nil || *a.Error != strings.Fields(fault)[0] || d.Status != retrying {
				t.Errorf("%s %s", d.Status, fmt.Sprint(*a.Error))
			}
		})
	}
}
