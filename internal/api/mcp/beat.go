package mcp

import (
	"net/http"
	"sync"
	"time"
)

// beatTime is how long a stream may be silent: what stands between client and server cuts those that are so for a minute or less.
const beatTime = 25 * time.Second

// A beating is the answer of a stream, in which a comment is sent whenever nothing else was for a while. It beats from the first flush on;
// what is never flushed is no stream.
type beating struct {
	http.ResponseWriter
	every time.Duration

	mu    sync.Mutex // guards the writer and what follows
	timer *time.Timer
	ended bool
}

// Write writes what a stream says.
func (b *beating) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer != nil && !b.ended {
		b.timer.Reset(b.every)
	}
	return b.ResponseWriter.Write(p)
}

// FlushError sends it on its way.
func (b *beating) FlushError() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer == nil && !b.ended && b.Header().Get("Content-Type") == "text/event-stream" {
		b.timer = time.AfterFunc(b.every, b.beat)
	}
	return http.NewResponseController(b.ResponseWriter).Flush()
}

// beat sends a comment, which no client makes anything of.
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

// end is called before the answer is over: nothing is written to it then.
func (b *beating) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	if b.timer != nil {
		b.timer.Stop()
	}
}
