package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// This file is soniq mcp: it forwards between a desktop assistant, on standard input and output, and the tool server of a running
// soniq. No tool is done here.

// desktopKey holds the key where desktop assistants are configured; the variable of the other commands is good too.
const desktopKey = "SONIQ_API_KEY"

// desktopCommand forwards until standard input ends. The key comes from the environment, where other programs cannot read it.
func desktopCommand(ctx context.Context, args []string) error {
	d := desktop{client: &http.Client{}, out: os.Stdout, key: cmp.Or(os.Getenv(desktopKey), os.Getenv(keyVariable))}
	f := flag.NewFlagSet("mcp", flag.ContinueOnError)
	f.StringVar(&d.url, "url", "http://localhost:8080/mcp/sse", "address of the tool server")
	f.BoolVar(&d.readOnly, "read-only", false, "only tools that change nothing")
	f.StringVar(&d.org, "org", "", "of a partner's key: the organisation to act in")
	if err := f.Parse(args); err != nil {
		return err
	}
	if d.key == "" {
		return errors.New(desktopKey + " is not set: make a key with soniq key create")
	}
	return d.run(ctx, os.Stdin)
}

// A desktop is one assistant's connection.
type desktop struct {
	client   *http.Client
	url      string
	key      string
	org      string
	readOnly bool

	mu      sync.Mutex // guards the following
	out     io.Writer
	session string
	version string
	wait    sync.WaitGroup
}

// A rpc is what the bridge looks at in a message.
type rpc struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name string                     `json:"name"`
		URI  string                     `json:"uri"`
		Meta map[string]json.RawMessage `json:"_meta"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
}

// mostLine bounds a message, in bytes.
const mostLine = 4 << 20

func (d *desktop) run(ctx context.Context, in io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), mostLine)
	for lines.Scan() {
		line := bytes.Clone(bytes.TrimSpace(lines.Bytes()))
		if len(line) == 0 {
			continue
		}
		var m rpc
		if json.Unmarshal(line, &m) != nil {
			d.write([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"not a JSON message"}}`))
			continue
		}
		if m.Method == "initialize" || m.Method == "notifications/initialized" { // the rest needs the session
			d.forward(ctx, m, line)
			continue
		}
		d.wait.Go(func() { d.forward(ctx, m, line) })
	}
	d.close(ctx, cancel)
	return lines.Err()
}

// close waits for what is under way for a moment, and ends the session.
func (d *desktop) close(ctx context.Context, cancel context.CancelFunc) {
	const moment = 5 * time.Second
	stop := time.AfterFunc(moment, cancel)
	defer stop.Stop()
	if d.current() != "" {
		if r, err := d.request(ctx, http.MethodDelete, nil, d.kept()); err == nil {
			_ = r.Body.Close() // the stream of the server's own messages ends with its session
		}
	}
	d.wait.Wait()
}

func (d *desktop) current() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.session
}

// kept are the headers of a session.
func (d *desktop) kept() map[string]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := map[string]string{}
	if d.session != "" {
		h["Mcp-Session-Id"] = d.session
	}
	if d.version != "" {
		h["Mcp-Protocol-Version"] = d.version
	}
	return h
}

// headers are those a message travels with, by the revision it is of.
func (d *desktop) headers(m rpc) map[string]string {
	var version string
	if json.Unmarshal(m.Params.Meta["io.modelcontextprotocol/protocolVersion"], &version) != nil || version < "2026-07-28" {
		if m.Method == "initialize" {
			return nil
		}
		return d.kept()
	}
	h := map[string]string{"Mcp-Protocol-Version": version, "Mcp-Method": m.Method}
	if name := m.Params.Name + m.Params.URI; name != "" {
		h["Mcp-Name"] = name
	}
	return h
}

func (d *desktop) request(ctx context.Context, method string, body []byte, headers map[string]string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, d.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+d.key)
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Content-Type", "application/json")
	if method == http.MethodGet {
		r.Header.Set("Accept", "text/event-stream")
	}
	if d.org != "" {
		r.Header.Set("On-Behalf-Of", d.org)
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	return d.client.Do(r)
}

// forward sends a message and hands on what is answered.
func (d *desktop) forward(ctx context.Context, m rpc, line []byte) {
	if m.Method == "tools/call" && d.readOnly && !readsOnly(m.Params.Name) {
		d.fail(m, -32602, m.Params.Name+" is switched off for this assistant")
		return
	}
	r, err := d.request(ctx, http.MethodPost, line, d.headers(m))
	if err != nil {
		d.fail(m, -32001, d.url+" cannot be reached: "+err.Error())
		return
	}
	defer func() { _ = r.Body.Close() }()
	if m.Method == "initialize" {
		d.mu.Lock()
		d.session = r.Header.Get("Mcp-Session-Id")
		d.mu.Unlock()
	}
	switch kind := r.Header.Get("Content-Type"); {
	case strings.HasPrefix(kind, "text/event-stream"):
		d.follow(r.Body, m)
	case r.StatusCode >= 400:
		d.refuse(m, r)
	case r.StatusCode != http.StatusAccepted:
		if b, err := io.ReadAll(io.LimitReader(r.Body, mostLine)); err == nil {
			d.deliver(m, b)
		}
	}
	if m.Method == "notifications/initialized" && d.current() != "" {
		d.wait.Go(func() { d.listen(ctx) })
	}
}

// listen hands on what the server asks and tells by itself, until the session ends.
func (d *desktop) listen(ctx context.Context) {
	r, err := d.request(ctx, http.MethodGet, nil, d.kept())
	if err != nil {
		return
	}
	defer func() { _ = r.Body.Close() }()
	if r.StatusCode == http.StatusOK {
		d.follow(r.Body, rpc{})
	}
}

// follow hands on the messages of a stream of server-sent events.
func (d *desktop) follow(body io.Reader, m rpc) {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 64<<10), mostLine)
	var data []string
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "data:"); ok {
			data = append(data, strings.TrimPrefix(text, " "))
			continue
		}
		if lines.Text() == "" && strings.Join(data, "") != "" {
			d.deliver(m, []byte(strings.Join(data, "\n")))
		}
		if lines.Text() == "" {
			data = nil
		}
	}
}

// deliver hands a message of the server to the assistant.
func (d *desktop) deliver(question rpc, message []byte) {
	var answer struct {
		Result struct {
			Version string `json:"protocolVersion"`
		} `json:"result"`
	}
	if question.Method == "initialize" && json.Unmarshal(message, &answer) == nil && answer.Result.Version != "" {
		d.mu.Lock()
		d.version = answer.Result.Version
		d.mu.Unlock()
	}
	if question.Method == "tools/list" && d.readOnly {
		message = onlyReading(message)
	}
	d.write(message)
}

// readsOnly reports whether a tool of the contract changes nothing.
func readsOnly(name string) bool {
	verb, _, _ := strings.Cut(name, "_")
	return verb == "get" || verb == "list" || verb == "lookup" || verb == "search"
}

// onlyReading leaves out of a list the tools that change something.
func onlyReading(message []byte) []byte {
	var all map[string]json.RawMessage
	var result map[string]json.RawMessage
	var tools, kept []json.RawMessage
	if json.Unmarshal(message, &all) != nil || json.Unmarshal(all["result"], &result) != nil || json.Unmarshal(result["tools"], &tools) != nil {
		return message
	}
	for _, t := range tools {
		var named struct{ Name string }
		if json.Unmarshal(t, &named) == nil && readsOnly(named.Name) {
			kept = append(kept, t)
		}
	}
	result["tools"], _ = json.Marshal(kept)
	all["result"], _ = json.Marshal(result)
	out, _ := json.Marshal(all)
	return out
}

// refuse tells the assistant what HTTP answered.
func (d *desktop) refuse(m rpc, r *http.Response) {
	var p struct {
		JSONRPC string `json:"jsonrpc"`
		Detail  string `json:"detail"`
		Code    string `json:"code"`
	}
	b, _ := io.ReadAll(io.LimitReader(r.Body, mostLine))
	_ = json.Unmarshal(b, &p)
	if p.JSONRPC != "" {
		d.write(b)
		return
	}
	d.fail(m, -32000, strings.TrimSpace(fmt.Sprintf("%s %s (HTTP %d)", p.Code, p.Detail, r.StatusCode)))
}

// fail answers a request of the assistant with an error; what is no request is told on standard error.
func (d *desktop) fail(m rpc, code int, text string) {
	if len(m.ID) == 0 || m.Method == "" {
		fmt.Fprintln(os.Stderr, "soniq mcp:", text)
		return
	}
	b, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": map[string]any{"code": code, "message": text}})
	d.write(b)
}

// write hands the assistant a message on a line of its own.
func (d *desktop) write(message []byte) {
	var line bytes.Buffer
	if json.Compact(&line, message) != nil {
		return
	}
	line.WriteByte('\n')
	d.mu.Lock()
	defer d.mu.Unlock()
	_, _ = d.out.Write(line.Bytes())
}
