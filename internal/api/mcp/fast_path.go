package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Fast path for the most frequent requests of the stateless revision: tools/call and tools/list. It returns the same
// answers as the SDK without a session and its streams, which cost ten times as much as the call. Requests that
// differ from the usual form in any respect are left to the SDK.

// fastRequest is a parsed request of the fast path.
type fastRequest struct {
	id         json.RawMessage
	method     string
	name       string
	arguments  json.RawMessage
	clientName string
}

// serveFast answers a request. It returns false if the SDK has to handle it.
func (s *Server) serveFast(w http.ResponseWriter, r *http.Request, v *sender) bool {
	u, meta, ok := parseFast(r.Header, v.body)
	if !ok {
		return false
	}
	if u.clientName, ok = s.clientMetas.lookup(meta); !ok {
		v.meta = meta // the SDK validates it
		return false
	}
	t := s.tools[u.name]
	switch {
	case u.method == "tools/list" && s.cfg.Extension == nil:
		s.writeAnswer(w, u, s.toolList(v))
		return true
	case t == nil || t.question != nil:
		return false
	}
	s.writeAnswer(w, u, s.runTool(r.Context(), v, t, u))
	return true
}

// parseFast parses a request. ok is false if anything is unusual.
func parseFast(h http.Header, body []byte) (u fastRequest, meta string, ok bool) {
	if r := (http.Request{Header: h}); r.Header.Get("Mcp-Protocol-Version") != statelessRevision || !acceptsBoth(h) ||
		h.Get("Last-Event-ID") != "" {
		return u, "", false
	}
	var all, params map[string]json.RawMessage
	if json.Unmarshal(body, &all) != nil || len(all) != 4 || string(all["jsonrpc"]) != `"2.0"` ||
		json.Unmarshal(all["params"], &params) != nil {
		return u, "", false
	}
	if u.id = all["id"]; !isPlainID(u.id) || json.Unmarshal(all["method"], &u.method) != nil || h.Get("Mcp-Method") != u.method {
		return u, "", false
	}
	raw := params["_meta"]
	if len(raw) == 0 || len(raw) > maxMetaBytes || bytes.Contains(raw, []byte("progressToken")) {
		return u, "", false
	}
	switch u.method {
	case "tools/list":
		return u, string(raw), len(params) == 1
	case "tools/call":
		u.arguments, ok = params["arguments"]
		return u, string(raw), ok && len(params) == 3 && json.Unmarshal(params["name"], &u.name) == nil && h.Get("Mcp-Name") == u.name
	}
	return u, "", false
}

// isPlainID reports whether an id is returned unchanged by the SDK: an integer, or a plain string.
func isPlainID(id json.RawMessage) bool {
	var n int32
	return json.Unmarshal(id, &n) == nil && string(id) != "null" ||
		len(id) > 2 && len(id) < 100 && id[0] == '"' && !bytes.ContainsAny(id, "\\<>&") &&
			bytes.IndexFunc(id, func(r rune) bool { return r > '~' }) < 0
}

// acceptsBoth reports whether the client sends JSON and accepts both media types of answers.
func acceptsBoth(h http.Header) bool {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil || kind != "application/json" || len(h.Values("Accept")) != 1 {
		return false
	}
	a := h.Get("Accept")
	return a == "application/json, text/event-stream" || a == "text/event-stream, application/json"
}

// runTool returns the encoded result of a tool call. A panic returns an internal error.
func (s *Server) runTool(ctx context.Context, v *sender, t *tool, u fastRequest) (answer []byte) {
	defer func() {
		if cause := recover(); cause != nil {
			s.cfg.Log.Error("tool server panicked", "method", u.method, "err", cause, "stack", string(debug.Stack()))
			answer = []byte(`"error":{"code":-32603,"message":"something went wrong on our side"}`)
		}
	}()
	c := &toolCall{s: s, t: t, input: callInput{arguments: u.arguments}, sender: v, ctx: v.operationContext(ctx, t.name, u.clientName)}
	return s.encodeResult(c.execute())
}

// encodeResult encodes a result like the SDK.
func (s *Server) encodeResult(r *sdk.CallToolResult) []byte {
	meta := sdk.Meta{sdk.MetaKeyServerInfo: s.serverInfo}
	maps.Copy(meta, r.Meta)
	out := struct {
		Meta       sdk.Meta        `json:"_meta"`
		Content    []sdk.Content   `json:"content"`
		Structured json.RawMessage `json:"structuredContent,omitempty"`
		IsError    bool            `json:"isError,omitempty"`
		Type       string          `json:"resultType"`
	}{meta, r.Content, nil, r.IsError, "complete"}
	if b, ok := r.StructuredContent.(json.RawMessage); ok {
		out.Structured = b
	}
	b, err := encode(out)
	if err != nil {
		s.cfg.Log.Error("result not written", "err", err)
		return []byte(`"error":{"code":-32603,"message":"something went wrong on our side"}`)
	}
	return append([]byte(`"result":`), b...)
}

// writeAnswer writes an answer as the only event of a stream.
func (s *Server) writeAnswer(w http.ResponseWriter, u fastRequest, body []byte) {
	h := w.Header()
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("Content-Type", "text/event-stream")
	var b bytes.Buffer
	b.Grow(len(body) + len(u.id) + 64)
	_, _ = fmt.Fprintf(&b, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,", u.id)
	b.Write(body)
	b.WriteString("}\n\n")
	_, _ = w.Write(b.Bytes())
}

// toolList returns the encoded list of the tools a credential may use. It is cached per set of tools.
func (s *Server) toolList(v *sender) []byte {
	var set strings.Builder
	for _, t := range s.catalogue {
		if hasScope(v.principal, t.scope) {
			set.WriteString(t.name + " ")
		}
	}
	s.toolLists.mu.Lock()
	defer s.toolLists.mu.Unlock()
	if b, ok := s.toolLists.all[set.String()]; ok {
		return b
	}
	list := &sdk.ListToolsResult{Meta: sdk.Meta{sdk.MetaKeyServerInfo: s.serverInfo}}
	cacheable(context.Background(), nil, &list.Cacheable)
	list.ResultType = "complete"
	s.filterTools(list, v)
	b, err := encode(list)
	if err != nil {
		s.cfg.Log.Error("list of tools not written", "err", err)
		return []byte(`"error":{"code":-32603,"message":"something went wrong on our side"}`)
	}
	if len(s.toolLists.all) >= maxToolLists {
		clear(s.toolLists.all)
	}
	s.toolLists.all[set.String()] = append([]byte(`"result":`), b...)
	return s.toolLists.all[set.String()]
}

// toolListCache holds encoded lists of tools, by the names of the tools. mu guards it.
type toolListCache struct {
	mu  sync.Mutex // guards all
	all map[string][]byte
}

// clientMetaCache holds the _meta objects that the SDK has accepted, with the clients' names. It is safe for
// concurrent use.
type clientMetaCache struct {
	mu  sync.RWMutex // guards all
	all map[string]string
}

// Limits of the caches in entries, and of a _meta object in bytes.
const (
	maxToolLists   = 64
	maxClientMetas = 256
	maxMetaBytes   = 2000
)

func (m *clientMetaCache) lookup(meta string) (client string, ok bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	client, ok = m.all[meta]
	return client, ok
}

// add stores a _meta object that the SDK has accepted; "" is ignored.
func (m *clientMetaCache) add(meta string) {
	var about struct {
		Client *sdk.Implementation `json:"io.modelcontextprotocol/clientInfo"`
	}
	if meta == "" || json.Unmarshal([]byte(meta), &about) != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.all) >= maxClientMetas {
		clear(m.all)
	}
	m.all[meta] = clientName(about.Client)
}
