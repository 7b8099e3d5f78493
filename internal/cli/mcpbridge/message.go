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

// rpc has the members of a JSON-RPC message that the bridge reads.
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

// follow delivers the messages of a stream of Server-Sent Events, until it ends. m is the request that the stream
// responds to.
func (b *Bridge) follow(body io.Reader, m rpc) {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 64<<10), maxMessage)
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

// deliver writes a message of the server to the assistant. question is the request that it responds to.
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
		message = onlyReadingTools(message)
	}
	b.write(message)
}

// readsOnly reports whether a tool changes nothing. The names of such tools begin with one of four verbs.
func readsOnly(name string) bool {
	verb, _, _ := strings.Cut(name, "_")
	return verb == "get" || verb == "list" || verb == "lookup" || verb == "search"
}

// onlyReadingTools removes the tools that change something from a list of tools.
func onlyReadingTools(message []byte) []byte {
	var all map[string]json.RawMessage
	var result map[string]json.RawMessage
	var tools, kept []json.RawMessage
	if json.Unmarshal(message, &all) != nil || json.Unmarshal(all["result"], &result) != nil ||
		json.Unmarshal(result["tools"], &tools) != nil {
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

// sendHTTPError sends an HTTP error to the assistant as an error of JSON-RPC.
func (b *Bridge) sendHTTPError(m rpc, r *http.Response) {
	var p struct {
		JSONRPC string `json:"jsonrpc"`
		Detail  string `json:"detail"`
		Code    string `json:"code"`
	}
	body, _ := io.ReadAll(io.LimitReader(r.Body, maxMessage))
	_ = json.Unmarshal(body, &p)
	if p.JSONRPC != "" {
		b.write(body)
		return
	}
	b.sendError(m, -32000, strings.TrimSpace(fmt.Sprintf("%s %s (HTTP %d)%s", p.Code, p.Detail, r.StatusCode, b.remedy(r))))
}

// remedy returns the remedy for an HTTP error, or "".
func (b *Bridge) remedy(r *http.Response) string {
	challenge := r.Header.Get("Www-Authenticate")
	switch {
	case r.StatusCode == http.StatusTooManyRequests:
		return ": wait " + cmp.Or(r.Header.Get("Retry-After"), "a few") + " seconds"
	case r.StatusCode == http.StatusUnauthorized && b.Key != "":
		return ": check the key"
	case r.StatusCode == http.StatusUnauthorized:
		return ": run " + b.LoginCommand
	case !strings.Contains(challenge, "insufficient_scope"):
		return ""
	case b.Key != "":
		return ": the key lacks a scope; make one that has it"
	}
	how := "the person has to allow it: " + b.LoginCommand + ` --scopes "` + notInScopes.ReplaceAllString(Param(challenge, "scope"),
		"") + `"`
	_, _ = fmt.Fprintln(b.Note, "soniq mcp:", how)
	return ": " + how
}

// notInScopes matches characters that scopes do not have. They are removed, because the text is shown as a command to
// copy.
var notInScopes = regexp.MustCompile(`[^a-z:_ -]`)

// sendError responds to a request of the assistant with an error. If m is not a request, the text goes to standard
// error.
func (b *Bridge) sendError(m rpc, code int, text string) {
	if len(m.ID) == 0 || m.Method == "" {
		_, _ = fmt.Fprintln(b.Note, "soniq mcp:", text)
		return
	}
	answer, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": map[string]any{"code": code, "message": text}})
	b.write(answer)
}

// write writes a message to the assistant on one line.
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
