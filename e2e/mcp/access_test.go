package mcp_test

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"soniq/e2e/rig"
	"soniq/internal/platform/access"
)

// reply is the response to one request.
type reply struct {
	status int
	header http.Header
	body   string
}

// post sends one message to the address; headers come in pairs.
func post(t testing.TB, address, key, message string, header ...string) reply {
	t.Helper()
	return request(t, http.MethodPost, address, key, message, header...)
}

// request sends a request to the address; headers come in pairs.
func request(t testing.TB, method, address, key, message string, header ...string) reply {
	t.Helper()
	r, err := http.NewRequest(method, address, bytes.NewBufferString(message))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{a.StatusCode, a.Header, string(b)}
}

const (
	initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`
	meta       = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"}}`
)

// once calls a tool in the revision without sessions.
func once(t testing.TB, c *rig.Client, tool, args string) reply {
	t.Helper()
	return post(t, address(c.Server), c.Key, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`","arguments":`+args+`,`+meta+`}}`,
		"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", tool)
}

func TestTools_NeedTheirScopeOnly(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{})
	org := s.Org("live").Org
	for _, scope := range access.All() {
		if scope.Partner() {
			continue // only keys of partners have these scopes, and no tool needs them
		}
		c := s.Key(org, "live", string(scope))
		var shown []string
		for _, tool := range published {
			r := once(t, c, tool[0], `{"nonsense":1}`)
			if tool[1] == string(scope) {
				shown = append(shown, tool[0])
				if r.status != 200 || !strings.Contains(r.body, "validation_failed") {
					t.Errorf("%s with %s: %d %s", tool[0], scope, r.status, r.body)
				}
				continue
			}
			challenge := r.header.Get("WWW-Authenticate")
			if r.status != 403 || !strings.Contains(challenge, `error="insufficient_scope"`) || !strings.Contains(challenge, tool[1]) ||
				!strings.Contains(challenge, string(scope)) || !strings.Contains(challenge, "resource_metadata=") {
				t.Errorf("%s with %s alone: %d %q", tool[0], scope, r.status, challenge)
			}
		}
		onlyThese(t, c, shown)
	}
}

// onlyThese checks that the list contains only the tools that a credential may use, and that the old transport
// refuses the others with an explanation.
func onlyThese(t *testing.T, c *rig.Client, names []string) {
	t.Helper()
	a := connect(t, c, "2024-11-05 over SSE", nil)
	list, err := a.session.ListTools(a.ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, tool := range list.Tools {
		got = append(got, tool.Name)
	}
	if !slices.Equal(got, names) {
		t.Errorf("list: %v, want %v", got, names)
	}
	if other := "list_users"; !slices.Contains(names, other) {
		if code := a.refused(other, nil); code != "insufficient_scope" {
			t.Errorf("%s over the old transport: %s", other, code)
		}
	}
}

func TestSession_BoundToCredential(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{})
	a, b := s.Org("live"), s.Org("live")
	opened := post(t, address(s), a.Key, initialize)
	session := opened.header.Get("Mcp-Session-Id")
	if opened.status != 200 || session == "" {
		t.Fatalf("initialize: %d %s", opened.status, opened.body)
	}
	list := `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	for name, key := range map[string]string{"another organisation": b.Key, "another key": s.Key(a.Org, "live", "all").Key} {
		if r := post(t, address(s), key, list, "Mcp-Session-Id", session); r.status != 403 {
			t.Errorf("%s in the session: %d %s", name, r.status, r.body)
		}
	}
	if r := post(t, address(s), a.Key, list, "Mcp-Session-Id", session); r.status != 200 || !strings.Contains(r.body, "get_live_calls") {
		t.Errorf("its own: %d %s", r.status, r.body)
	}
	at := stream(t, s, a.Key)
	if r := post(t, "http://"+s.HTTP+at, b.Key, initialize); r.status != 404 {
		t.Errorf("another organisation on the stream: %d %s", r.status, r.body)
	}
	if r := post(t, "http://"+s.HTTP+at, a.Key, initialize); r.status != 202 {
		t.Errorf("its own stream: %d %s", r.status, r.body)
	}
}

// TestSession_UnknownIsNotFound proves that a session that was never opened, or that has ended, gets 404 with each method and revision. So
// a client knows that it has to open another one.
//
// https://github.com/aklivity/zilla/issues/2525
// https://github.com/zereight/gitlab-mcp/issues/697
func TestSession_UnknownIsNotFound(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{})
	org := s.Org("live")
	opened := post(t, address(s), org.Key, initialize)
	ended := opened.header.Get("Mcp-Session-Id")
	r := request(t, http.MethodDelete, address(s), org.Key, "", "Mcp-Session-Id", ended)
	if opened.status != 200 || ended == "" || r.status/100 != 2 {
		t.Fatalf("opened %d %q, ended %d %s", opened.status, ended, r.status, r.body)
	}
	for _, session := range []string{ended, "V5QMZC6NRYXHXC2PWQF4Q7BVOJ"} {
		for _, revision := range []string{"2025-03-26", "2025-06-18", "2025-11-25"} {
			headers := []string{"Mcp-Session-Id", session, "MCP-Protocol-Version", revision}
			for _, message := range []string{`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
				`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"get_live_calls","arguments":{}}}`,
				`{"jsonrpc":"2.0","method":"notifications/initialized"}`} {
				if r := post(t, address(s), org.Key, message, headers...); r.status != 404 || r.header.Get("Mcp-Session-Id") != "" {
					t.Errorf("session %q, %s, POST %s: %d %s", session, revision, message, r.status, r.body)
				}
			}
			for _, method := range []string{http.MethodGet, http.MethodDelete} {
				if r := request(t, method, address(s), org.Key, "", headers...); r.status != 404 {
					t.Errorf("session %q, %s, %s: %d %s", session, revision, method, r.status, r.body)
				}
			}
		}
	}
	if r := post(t, address(s), org.Key, initialize); r.status != 200 || r.header.Get("Mcp-Session-Id") == "" {
		t.Errorf("another session: %d %s", r.status, r.body)
	}
}

// stream opens a stream of the old transport and returns the address it announces.
func stream(t *testing.T, s *rig.Server, key string) string {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, address(s), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Body.Close() })
	first := make([]byte, 200)
	n, err := a.Body.Read(first)
	if err != nil {
		t.Fatal(err)
	}
	_, data, found := strings.Cut(string(first[:n]), "data: ")
	if !found {
		t.Fatalf("first event: %s", first[:n])
	}
	return strings.TrimSpace(strings.SplitN(data, "\n", 2)[0])
}

func TestAccess_StrangersAndForeignOriginsRefused(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{})
	org := s.Org("live")
	for name, key := range map[string]string{"nobody": "", "a wrong key": "soniq_live_wrong"} {
		r := post(t, address(s), key, initialize)
		challenge := r.header.Get("WWW-Authenticate")
		if r.status != 401 || !strings.Contains(challenge, "resource_metadata=") || !strings.Contains(challenge, "calls:read") {
			t.Errorf("%s: %d %q", name, r.status, challenge)
		}
		if strings.Contains(challenge, "invalid_token") != (key != "") {
			t.Errorf("%s: %q", name, challenge)
		}
	}
	if r := post(t, address(s), org.Key, initialize, "Origin", "https://evil.example"); r.status != 403 {
		t.Errorf("a foreign page: %d", r.status)
	}
	if r := post(t, address(s), org.Key, initialize, "Origin", "http://"+s.HTTP); r.status != 200 {
		t.Errorf("our own page: %d %s", r.status, r.body)
	}
	if r := post(t, address(s), org.Key, initialize, "Origin", "http://localhost:6274"); r.status != 200 {
		t.Errorf("a page of this machine: %d %s", r.status, r.body)
	}
	r, _ := http.NewRequest(http.MethodPut, address(s), nil)
	r.Header.Set("Authorization", "Bearer "+org.Key)
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = a.Body.Close()
	if a.StatusCode != 405 || a.Header.Get("Allow") == "" {
		t.Errorf("PUT: %d, Allow %q", a.StatusCode, a.Header.Get("Allow"))
	}
	if r := post(t, address(s), org.Key, `{"jsonrpc":"2.0","id":1,"method":"no/such","params":{`+meta+`}}`,
		"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "no/such"); r.status != 404 || !strings.Contains(r.body, "-32601") {
		t.Errorf("an unknown method without a session: %d %s", r.status, r.body)
	}
}
