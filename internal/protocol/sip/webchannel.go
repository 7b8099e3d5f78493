package sip

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
type webChannel struct {
	ws     *websocket.Conn
	ctx    context.Context
	cancel context.CancelFunc
}

func newWebChannel(s *Server, ws *websocket.Conn) *webChannel {
	w := &webChannel{ws: ws}
	w.ctx, w.cancel = context.WithCancel(s.ctx)
	return w
}

func (w *webChannel) close() {
	w.cancel()
	w.ws.CloseNow()
}

// serve reads messages until the connection ends.
func (w *webChannel) serve(c *conn) {
	defer c.judge()
	for {
		w.ws.SetReadLimit(int64(c.largest()))
		raw, err := w.read()
		if err != nil {
			return
		}
		switch message := strings.TrimLeft(raw, "\r\n"); {
		case message != "":
			c.spoke = true
			c.srv.receiveOn(c, message)
		case raw == "\r\n\r\n":
			c.write(crlf) // RFC 7118 §6, RFC 5626 §3.5.1
		}
	}
}

// readMessage returns one message, reassembled from its fragments.
func (w *webChannel) read() (string, error) {
	_, r, err := w.ws.Reader(w.ctx)
	if err != nil {
		return "", err
	}
	late := time.AfterFunc(messageLimit, w.cancel)
	defer late.Stop()
	b, err := io.ReadAll(r)
	return string(b), err
}

func (w *webChannel) write(b []byte, ends []int) error {
	ctx, cancel := context.WithTimeout(w.ctx, writeLimit)
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
func (w *webChannel) keepAlive(c *conn) {
	began := time.Now()
	for pause(w.ctx, c.srv.limits.Ping) == nil {
		ctx, cancel := context.WithTimeout(w.ctx, c.srv.limits.Ping)
		err := w.ws.Ping(ctx)
		cancel()
		if err != nil || time.Since(began) > c.patience() && !c.known.Load() {
			c.fail()
			return
		}
	}
}
