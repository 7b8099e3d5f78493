// Package mcpbridge forwards messages between a desktop assistant, on standard input and output, and the tool server
// of a running soniq. It authenticates with an API key, or with the login of a person. It runs no tool itself.
package mcpbridge

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Bridge is the connection of one assistant.
type Bridge struct {
	URL          string
	Key          string // "": Login is used
	Login        *Login
	Org          string // with the key of a partner: the organisation to act in
	ReadOnly     bool
	Out          io.Writer // messages for the assistant
	Note         io.Writer // notes for the person
	LoginCommand string    // command to log in with, for error texts

	client          http.Client
	mu              sync.Mutex // guards Out, session, opening messages and version
	opening         sync.Mutex // held while a session is opened again
	session         serverSession
	openingMessages []message // messages with which the assistant opened the session
	version         string
	wait            sync.WaitGroup // counts messages in progress
	streams         sync.WaitGroup // counts streams of the server's own messages
}

// serverSession is a session of the server.
type serverSession struct {
	id    string
	login time.Time          // time of the login that opened it
	end   context.CancelFunc // ends the stream of the server's own messages; nil if there is none
}

// message is a message of the assistant, with the line it was decoded from.
type message struct {
	rpc
	line []byte
}

// maxMessage limits a message, in bytes.
const maxMessage = 4 << 20

// Run forwards messages until the input ends.
func (b *Bridge) Run(ctx context.Context, in io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), maxMessage)
	for lines.Scan() {
		m := message{line: bytes.Clone(bytes.TrimSpace(lines.Bytes()))}
		if len(m.line) == 0 {
			continue
		}
		if json.Unmarshal(m.line, &m.rpc) != nil {
			b.write([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"not a JSON message"}}`))
			continue
		}
		if m.opensSession() { // later messages need the session
			b.forward(ctx, m)
			continue
		}
		b.wait.Go(func() { b.forward(ctx, m) })
	}
	b.close(ctx, cancel)
	return lines.Err()
}

// opensSession reports whether a message opens a session: initialize and its notification.
func (m message) opensSession() bool {
	return m.Method == "initialize" || m.Method == "notifications/initialized"
}

// close waits up to five seconds for messages in progress, and deletes the session.
func (b *Bridge) close(ctx context.Context, cancel context.CancelFunc) {
	const moment = 5 * time.Second
	stop := time.AfterFunc(moment, cancel)
	defer stop.Stop()
	b.wait.Wait()
	if b.current().id != "" {
		if r, err := b.request(ctx, http.MethodDelete, nil, b.sessionHeaders()); err == nil {
			_ = r.Body.Close() // the stream of the server's own messages ends with its session
		}
	}
	cancel()
	b.streams.Wait()
}

func (b *Bridge) current() serverSession {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.session
}

// sessionHeaders returns the headers of the present session.
func (b *Bridge) sessionHeaders() map[string]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := map[string]string{}
	if b.session.id != "" {
		h["Mcp-Session-Id"] = b.session.id
	}
	if b.version != "" {
		h["Mcp-Protocol-Version"] = b.version
	}
	return h
}

// headers returns the headers of a message. They depend on the revision of the protocol that the message names.
func (b *Bridge) headers(m message) map[string]string {
	var version string
	if json.Unmarshal(m.Params.Meta["io.modelcontextprotocol/protocolVersion"], &version) != nil || version < "2026-07-28" {
		if m.Method == "initialize" {
			return nil
		}
		return b.sessionHeaders()
	}
	h := map[string]string{"Mcp-Protocol-Version": version, "Mcp-Method": m.Method}
	if name := m.Params.Name + m.Params.URI; name != "" {
		h["Mcp-Name"] = name
	}
	return h
}

// request sends a request with the credential. If the server rejects the token, it is refreshed once.
func (b *Bridge) request(ctx context.Context, method string, body []byte, headers map[string]string) (*http.Response, error) {
	if b.Key != "" {
		return b.send(ctx, method, body, headers, b.Key)
	}
	k, err := b.Login.Credentials(ctx)
	if err != nil {
		return nil, err
	}
	r, err := b.send(ctx, method, body, headers, k.Access)
	if err != nil || r.StatusCode != http.StatusUnauthorized {
		return r, err
	}
	_ = r.Body.Close()
	if k, err = b.Login.Renew(ctx, k.Access); err != nil {
		return nil, err
	}
	return b.send(ctx, method, body, headers, k.Access)
}

func (b *Bridge) send(ctx context.Context, method string, body []byte, headers map[string]string, credential string) (*http.Response,
	error) {
	r, err := http.NewRequestWithContext(ctx, method, b.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+credential)
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Content-Type", "application/json")
	if method == http.MethodGet {
		r.Header.Set("Accept", "text/event-stream")
	}
	if b.Org != "" {
		r.Header.Set("On-Behalf-Of", b.Org)
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	return b.client.Do(r)
}

// forward sends a message to the server and the response to the assistant.
func (b *Bridge) forward(ctx context.Context, m message) {
	if m.Method == "tools/call" && b.ReadOnly && !readsOnly(m.Params.Name) {
		b.sendError(m.rpc, -32602, m.Params.Name+" is switched off for this assistant")
		return
	}
	r, err := b.post(ctx, m)
	if err != nil {
		b.sendError(m.rpc, -32001, b.ErrorText(err))
		return
	}
	defer func() { _ = r.Body.Close() }()
	if m.opensSession() {
		b.sessionOpened(ctx, m, r)
	}
	switch kind := r.Header.Get("Content-Type"); {
	case strings.HasPrefix(kind, "text/event-stream"):
		b.follow(r.Body, m.rpc)
	case r.StatusCode >= 400:
		b.sendHTTPError(m.rpc, r)
	case r.StatusCode != http.StatusAccepted:
		if answer, err := io.ReadAll(io.LimitReader(r.Body, maxMessage)); err == nil {
			b.deliver(m.rpc, answer)
		}
	}
}

// ErrorText returns the cause of an error of the connection, and the remedy.
func (b *Bridge) ErrorText(err error) string {
	var over *LoginRequired
	var outside *url.Error
	switch {
	case errors.As(err, &over):
		return over.Reason + ": run " + b.LoginCommand
	case errors.As(err, &outside):
		return outside.URL + " cannot be reached: " + outside.Err.Error()
	}
	return err.Error()
}
