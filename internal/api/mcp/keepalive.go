package mcp

import (
	"net/http"
	"sync"
	"time"
)

// keepaliveInterval bounds the silence on a stream, because intermediaries close connections that are silent for
// about a minute.
const keepaliveInterval = 25 * time.Second

// keepaliveWriter is the response writer of an event stream. After a silent interval it sends a comment. It starts
// with the first flush, so that other responses get no comments. It is safe for concurrent use.
type keepaliveWriter struct {
	http.ResponseWriter
	interval time.Duration

	mu      sync.Mutex // guards the writer and the fields below
	timer   *time.Timer
	stopped bool
}

// Write writes to the response and restarts the interval.
func (b *keepaliveWriter) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer != nil && !b.stopped {
		b.timer.Reset(b.interval)
	}
	return b.ResponseWriter.Write(p)
}

// FlushError flushes the response. The first flush of an event stream starts the keep-alive.
func (b *keepaliveWriter) FlushError() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer == nil && !b.stopped && b.Header().Get("Content-Type") == "text/event-stream" {
		b.timer = time.AfterFunc(b.interval, b.sendKeepalive)
	}
	return http.NewResponseController(b.ResponseWriter).Flush()
}

// sendKeepalive sends a comment, which clients ignore.
func (b *keepaliveWriter) sendKeepalive() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return
	}
	if _, err := b.ResponseWriter.Write([]byte(": still here\n\n")); err != nil {
		return
	}
	_ = http.NewResponseController(b.ResponseWriter).Flush()
	b.timer.Reset(b.interval)
}

// stop is called before the handler returns: nothing may be written after it.
func (b *keepaliveWriter) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	if b.timer != nil {
		b.timer.Stop()
	}
}
