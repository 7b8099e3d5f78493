package mcpbridge

import (
	"context"
	"io"
	"net/http"
	"time"
)

// post sends a message. If the server no longer has the session, or it belongs to another login, the session is
// opened again first.
func (b *Bridge) post(ctx context.Context, m message) (*http.Response, error) {
	if m.opensSession() {
		return b.request(ctx, http.MethodPost, m.line, b.headers(m))
	}
	before := b.current()
	if before.id != "" && b.Key == "" && !before.login.Equal(b.loginTime()) {
		b.reopen(ctx, before)
		before = b.current()
	}
	r, err := b.request(ctx, http.MethodPost, m.line, b.headers(m))
	if err != nil || r.StatusCode != http.StatusNotFound || before.id == "" {
		return r, err
	}
	_ = r.Body.Close()
	b.reopen(ctx, before)
	return b.request(ctx, http.MethodPost, m.line, b.headers(m))
}

// loginTime returns the time of the login in use, or the zero time for a key.
func (b *Bridge) loginTime() time.Time {
	if b.Key != "" {
		return time.Time{}
	}
	k, err := b.Login.Store.Read()
	if err != nil || k == nil {
		return time.Time{}
	}
	return k.LoggedInAt
}

// sessionOpened stores the session that a message opened, and starts to receive the server's own messages.
func (b *Bridge) sessionOpened(ctx context.Context, m message, r *http.Response) {
	login := b.loginTime()
	b.mu.Lock()
	defer b.mu.Unlock()
	if m.Method == "initialize" {
		if b.session.end != nil {
			b.session.end()
		}
		b.session, b.openingMessages = serverSession{id: r.Header.Get("Mcp-Session-Id"), login: login}, []message{m}
		return
	}
	if len(b.openingMessages) == 1 {
		b.openingMessages = append(b.openingMessages, m)
	}
	if b.session.id != "" && b.session.end == nil {
		ctx, b.session.end = context.WithCancel(ctx)
		b.streams.Go(func() { b.listen(ctx) })
	}
}

// reopen opens the session again with the messages of the assistant, unless another goroutine did so meanwhile.
func (b *Bridge) reopen(ctx context.Context, gone serverSession) {
	b.opening.Lock()
	defer b.opening.Unlock()
	b.mu.Lock()
	now, opener := b.session.id, b.openingMessages
	b.mu.Unlock()
	if now != gone.id {
		return
	}
	for _, m := range opener {
		r, err := b.request(ctx, http.MethodPost, m.line, b.headers(m))
		if err != nil {
			return
		}
		if r.StatusCode < 300 {
			b.sessionOpened(ctx, m, r)
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, maxMessage)) // the assistant has the response already
		_ = r.Body.Close()
	}
}

// listen delivers the server's own requests and notifications until the session ends.
func (b *Bridge) listen(ctx context.Context) {
	r, err := b.request(ctx, http.MethodGet, nil, b.sessionHeaders())
	if err != nil {
		return
	}
	defer func() { _ = r.Body.Close() }()
	if r.StatusCode == http.StatusOK {
		b.follow(r.Body, rpc{})
	}
}
