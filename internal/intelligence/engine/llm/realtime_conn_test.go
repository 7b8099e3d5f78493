package llm

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// TestRealtimeConn_LostConnectionNamed fails a session by its sender and by its reader. Both name the connection as the cause.
func TestRealtimeConn_LostConnectionNamed(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, err := websocket.Accept(w, r, nil); err == nil {
			defer func() { _ = c.CloseNow() }()
			<-c.CloseRead(r.Context()).Done()
		}
	}))
	t.Cleanup(server.Close)
	for name, run := range map[string]func(w *realtimeConn){
		"sender": func(w *realtimeConn) { w.sendLoop() },
		"reader": func(w *realtimeConn) { w.fail(w.readLoop()) },
	} {
		conn, _, err := websocket.Dial(t.Context(), server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.CloseNow()
		w := &realtimeConn{host: "engine.example", conn: conn, sendQueue: make(chan []byte, 1)}
		w.ctx, w.cancel = context.WithCancel(t.Context())
		w.sendQueue <- []byte("{}")
		run(w)
		if err := w.Err(); err == nil || !strings.Contains(err.Error(), "engine.example: the connection ended") {
			t.Errorf("%s: the session failed with %v", name, err)
		}
	}
}
