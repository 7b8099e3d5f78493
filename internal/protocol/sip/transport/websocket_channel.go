package transport

import (
	"context"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"
)

// WebSocket: messages, fragments, ping.

// webSocketChannel is a connChannel over WebSocket: one SIP message per WebSocket message, text or binary (RFC 7118
// §5).
type webSocketChannel struct {
	ws     *websocket.Conn
	ctx    context.Context
	cancel context.CancelFunc
}

func newWebSocketChannel(s *Layer, ws *websocket.Conn) *webSocketChannel {
	w := &webSocketChannel{ws: ws}
	w.ctx, w.cancel = context.WithCancel(s.ctx)
	return w
}

func (w *webSocketChannel) close() {
	w.cancel()
	w.ws.CloseNow()
}

// serve reads messages until the connection ends.
func (w *webSocketChannel) serve(c *Conn) {
	defer c.countIfUnused()
	for {
		w.ws.SetReadLimit(int64(c.maxMessageBytes()))
		raw, err := w.readMessage()
		if err != nil {
			return
		}
		switch message := strings.TrimLeft(raw, "\r\n"); {
		case message != "":
			c.gotMessage = true
			c.receive(message)
		case raw == "\r\n\r\n":
			c.write(crlf) // RFC 7118 §6, RFC 5626 §3.5.1
		}
	}
}

// readMessage returns one message, reassembled from its fragments.
func (w *webSocketChannel) readMessage() (string, error) {
	_, r, err := w.ws.Reader(w.ctx)
	if err != nil {
		return "", err
	}
	late := time.AfterFunc(messageTimeout, w.cancel)
	defer late.Stop()
	b, err := io.ReadAll(r)
	return string(b), err
}

func (w *webSocketChannel) write(b []byte, ends []int) error {
	ctx, cancel := context.WithTimeout(w.ctx, writeTimeout)
	defer cancel()
	from := 0
	for _, to := range ends {
		kind := websocket.MessageText
		if !utf8.Valid(b[from:to]) {
			kind = websocket.MessageBinary
		}
		if err := w.ws.Write(ctx, kind, b[from:to]); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// pingLoop sends pings. It closes the connection if a pong is missing, or if the peer has not authenticated for too
// long.
func (w *webSocketChannel) pingLoop(c *Conn) {
	began := time.Now()
	for pause(w.ctx, c.layer.config.PingInterval) == nil {
		ctx, cancel := context.WithTimeout(w.ctx, c.layer.config.PingInterval)
		err := w.ws.Ping(ctx)
		cancel()
		if err != nil || time.Since(began) > c.idleTimeout() && !c.Trusted.Load() {
			c.Close()
			return
		}
	}
}
