package mcpbridge

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
)

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

// follow hands on the messages of a stream of server-sent events.
func (b *Bridge) follow(body io.Reader, m rpc) {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 64<<10), mostLine)
	var data []string
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "data:"); ok {
			data = append(data, strings.TrimPrefix(text, " "))
			continue
		}
		if lines.Text() == "" && strings.Join(data, "") != "" {
			b.deliver(m, []byte(strings.Join(data, "\n")))
		}
		if lines.Text() == "" {
			data = nil
		}
	}
}

// deliver hands a message of the server to the assistant.
func (b *Bridge) deliver(question rpc, message []byte) {
	var answer struct {
		Result struct {
			Version string `json:"protocolVersion"`
		} `json:"result"`
	}
	if question.Method == "initialize" && json.Unmarshal(message, &answer) == nil && answer.Result.Version != "" {
		b.mu.Lock()
		b.version = answer.Result.Version
		b.mu.Unlock()
	}
	if question.Method == "tools/list" && b.ReadOnly {
		message = onlyReading(message)
	}
	b.write(message)
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
func (b *Bridge) refuse(m rpc, r *http.Response) {
	var p struct {
		JSONRPC string `json:"jsonrpc"`
		Detail  string `json:"detail"`
		Code    string `json:"code"`
	}
	body, _ := io.ReadAll(io.LimitReader(r.Body, mostLine))
	_ = json.Unmarshal(body, &p)
	if p.JSONRPC != "" {
		b.write(body)
		return
	}
	b.fail(m, -32000, strings.TrimSpace(fmt.Sprintf("%s %s (HTTP %d)%s", p.Code, p.Detail, r.StatusCode, b.advice(r))))
}

// advice says what to do about what HTTP refused.
func (b *Bridge) advice(r *http.Response) string {
	challenge := r.Header.Get("Www-Authenticate")
	switch {
	case r.StatusCode == http.StatusTooManyRequests:
		return ": wait " + cmp.Or(r.Header.Get("Retry-After"), "a few") + " seconds"
	case r.StatusCode == http.StatusUnauthorized && b.Key != "":
		return ": check the key"
	case r.StatusCode == http.StatusUnauthorized:
		return ": run " + b.Again
	case !strings.Contains(challenge, "insufficient_scope"):
		return ""
	case b.Key != "":
		return ": the key lacks a scope; make one that has it"
	}
	how := "the person has to allow it: " + b.Again + ` --scopes "` + harmless.ReplaceAllString(Word(challenge, "scope"), "") + `"`
	_, _ = fmt.Fprintln(b.Note, "soniq mcp:", how)
	return ": " + how
}

// harmless is what is not in the names of scopes, and must not be in a command.
var harmless = regexp.MustCompile(`[^a-z:_ -]`)

// fail answers a request of the assistant with an error; what is no request is told on standard error.
func (b *Bridge) fail(m rpc, code int, text string) {
	if len(m.ID) == 0 || m.Method == "" {
		_, _ = fmt.Fprintln(b.Note, "soniq mcp:", text)
		return
	}
	answer, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": map[string]any{"code": code, "message": text}})
	b.write(answer)
}

// write hands the assistant a message on a line of its own.
func (b *Bridge) write(message []byte) {
	var line bytes.Buffer
	if json.Compact(&line, message) != nil {
		return
	}
	line.WriteByte('\n')
	b.mu.Lock()
	defer b.mu.Unlock()
	_, _ = b.Out.Write(line.Bytes())
}
