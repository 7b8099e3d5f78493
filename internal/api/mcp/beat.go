package mcp

import (
	"net/http"
	"sync"
	"time"
)

// keepaliveInterval bounds the silence on a stream, because intermediaries close connections that are silent for
// about a minute.
const beatTime = 25 * time.Second

// keepaliveWriter is the response writer of an event stream. After a silent interval it sends a comment. It starts
// with the first flush, so that other responses get no comments. It is safe for concurrent use.
type beating struct {
	http.ResponseWriter
	every time.Duration

	mu    sync.Mutex // guards the writer and the fields below
	timer *time.Timer
	ended bool
}

// Write writes to the response and restarts the interval.
func (b *beating) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer != nil && !b.ended {
		b.timer.Reset(b.every)
	}
	return b.ResponseWriter.Write(p)
}

// FlushError flushes the response. The first flush of an event stream starts the keep-alive.
func (b *beating) FlushError() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer == nil && !b.ended && b.Header().Get("Content-Type") == "text/event-stream" {
		b.timer = time.AfterFunc(b.every, b.beat)
	}
	return http.NewResponseController(b.ResponseWriter).Flush()
}

// sendKeepalive sends a comment, which clients ignore.
func (b *beating) beat() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return
	}
	if _, err := b.ResponseWriter.Write([]byte(": still here\n\n")); err != nil {
		return
	}
	_ = http.NewResponseController(b.ResponseWriter).Flush()
	b.timer.Reset(b.every)
}

// stop is called before the handler returns: nothing may be written after it.
func (b *beating) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	if b.timer != nil {
		b.timer.Stop()
	}
}
