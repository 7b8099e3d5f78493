package egress_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/coder/websocket"

	"soniq/internal/platform/egress"
)

// WebSockets use the guard as well: it refuses connections to blocked addresses.
func TestClient_WebSocketUsesGuard(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err == nil {
			_ = c.Write(r.Context(), websocket.MessageText, []byte("hello"))
			_ = c.Close(websocket.StatusNormalClosure, "")
		}
	}))
	t.Cleanup(server.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	closed := egress.New(nil).Client(egress.Limits{})
	if _, _, err := websocket.Dial(ctx, server.URL, &websocket.DialOptions{HTTPClient: closed}); !errors.Is(err, egress.ErrBlocked) {
		t.Errorf("the guard lets it through: %v", err)
	}
	open := egress.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}).Client(egress.Limits{})
	c, _, err := websocket.Dial(ctx, server.URL, &websocket.DialOptions{HTTPClient: open})
	if err != nil {
		t.Fatal(err)
	}
	if _, b, err := c.Read(ctx); err != nil || string(b) != "hello" {
		t.Errorf("read %q: %v", b, err)
	}
}
