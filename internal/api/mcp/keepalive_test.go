package mcp

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// body returns the response so far.
func (b *keepaliveWriter) body(answer *httptest.ResponseRecorder) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return answer.Body.String()
}

func TestKeepalive_SilentStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answer := httptest.NewRecorder()
		answer.Header().Set("Content-Type", "text/event-stream")
		b := &keepaliveWriter{ResponseWriter: answer, interval: keepaliveInterval}
		say := func() {
			_, _ = b.Write([]byte("data: {}\n\n"))
			_ = http.NewResponseController(b).Flush()
		}
		say()
		time.Sleep(20 * time.Second)
		say()
		time.Sleep(20 * time.Second)
		if got := b.body(answer); got != "data: {}\n\ndata: {}\n\n" {
			t.Errorf("a stream that speaks: %q", got)
		}
		time.Sleep(40 * time.Second)
		b.stop()
		time.Sleep(time.Hour)
		if got := b.body(answer); got != "data: {}\n\ndata: {}\n\n: still here\n\n: still here\n\n" {
			t.Errorf("a stream that was silent for a minute: %q", got)
		}
	})
}

func TestKeepalive_NotForJSON(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answer := httptest.NewRecorder()
		b := &keepaliveWriter{ResponseWriter: answer, interval: keepaliveInterval}
		b.Header().Set("Content-Type", "application/json")
		_, _ = b.Write([]byte("{}"))
		_ = b.FlushError()
		time.Sleep(time.Hour)
		if got := b.body(answer); got != "{}" {
			t.Errorf("%q", got)
		}
	})
}
