package mcp_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"soniq/e2e/rig"
)

// A method that is not known is a JSON-RPC error with the id of the request in every revision, and the session goes on.
//
// https://github.com/modelcontextprotocol/python-sdk/issues/3193, https://github.com/modelcontextprotocol/go-sdk/issues/976
func TestUnknownMethod_EveryRevision(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{})
	org := s.Org("live")
	for _, revision := range []string{"2025-03-26", "2025-06-18", "2025-11-25"} {
		opened := post(t, address(s), org.Key, strings.Replace(initialize, "2025-11-25", revision, 1))
		session := []string{"Mcp-Session-Id", opened.header.Get("Mcp-Session-Id"), "MCP-Protocol-Version", revision}
		post(t, address(s), org.Key, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, session...)
		for _, id := range []string{`7`, `"seven"`, `9007199254740991`} {
			r := post(t, address(s), org.Key, `{"jsonrpc":"2.0","id":`+id+`,"method":"nonsense/method"}`, session...)
			wantError(t, revision, r, id, -32601)
		}
		for message, code := range map[string]int{`"id":1.5,"method":"ping"`: -32600, `"id":9007199254740993,"method":"ping"`: -32600,
			`"id":3,"method":"tools/call","params":{"name":5}`: -32602, `"id":4,"method":"prompts/get"`: -32602,
			`"id":5,"method":"notifications/initialized"`: -32600} {
			id := strings.TrimPrefix(strings.Split(message, ",")[0], `"id":`)
			wantError(t, revision, post(t, address(s), org.Key, `{"jsonrpc":"2.0",`+message+`}`, session...), id, code)
		}
		if r := post(t, address(s), org.Key, `{"jsonrpc":"2.0","method":"notifications/nonsense"}`, session...); r.status != 202 {
			t.Errorf("%s: a notification: %d %s", revision, r.status, r.body)
		}
		for _, more := range []string{`"method":"prompts/get","params":{"name":"nonsense"}`, `"method":"resources/read","params":{"uri":"nonsense://x"}`,
			`"method":"tools/call","params":{"name":"nonsense"}`, `"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"nonsense"},"argument":{"name":"a","value":"b"}}`,
			`"method":"resources/subscribe","params":{"uri":"calls://live"}`} {
			r := post(t, address(s), org.Key, `{"jsonrpc":"2.0","id":1,`+more+`}`, session...)
			if strings.Contains(r.body, `"code":0`) || strings.Contains(r.body, "unmarshal") {
				t.Errorf("%s: %s: %d %s", revision, more, r.status, r.body)
			}
		}
		if r := post(t, address(s), org.Key, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, session...); !strings.Contains(r.body, "get_live_calls") {
			t.Errorf("%s: the session is over: %d %s", revision, r.status, r.body)
		}
	}
	r := post(t, address(s), org.Key, `{"jsonrpc":"2.0","id":7,"method":"nonsense/method","params":{`+meta+`}}`, "MCP-Protocol-Version", "2026-07-28",
		"Mcp-Method", "nonsense/method")
	wantError(t, "2026-07-28", r, "7", -32601)
}

// A request before initialize, and a post that is no message, get a JSON-RPC error with a code, in each revision with sessions.
func TestPost_WithoutSessionOrMessage(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{})
	org := s.Org("live")
	for _, revision := range []string{"2025-03-26", "2025-06-18", "2025-11-25"} {
		for body, want := range map[string]struct {
			id   string
			code int
		}{
			`{"jsonrpc":"2.0","id":7,"method":"tools/list"}`:                                                     {"7", -32600},
			`{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"get_live_calls","arguments":{}}}`: {`"x"`, -32600},
			`xx`: {"null", -32700}, `[]`: {"null", -32700}, `{"jsonrpc":"1.0","id":3,"method":"ping"}`: {"null", -32700},
		} {
			r := post(t, address(s), org.Key, body, "MCP-Protocol-Version", revision)
			wantError(t, revision+" "+body, r, want.id, want.code)
			if r.status != 400 || r.header.Get("Mcp-Session-Id") != "" {
				t.Errorf("%s %s: %d, session %q", revision, body, r.status, r.header.Get("Mcp-Session-Id"))
			}
		}
	}
}

// wantError checks that an answer is a JSON-RPC error with an id and a code.
func wantError(t *testing.T, revision string, r reply, id string, code int) {
	t.Helper()
	var e struct {
		ID    json.RawMessage
		Error struct{ Code int }
	}
	if err := json.Unmarshal([]byte(r.body), &e); err != nil || string(e.ID) != id || e.Error.Code != code {
		t.Errorf("%s: %d %s, want id %s and code %d: %v", revision, r.status, r.body, id, code, err)
	}
}

// The official TypeScript client gets the error, and its session goes on; the scheme of its credential is in lower case.
//
// https://github.com/modelcontextprotocol/python-sdk/issues/3193, https://github.com/BerriAI/litellm/issues/34743
func TestTypeScriptClient_UnknownMethod(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{})
	c := exec.Command("node", "unknown_method.mjs", address(s))
	c.Dir = filepath.Join(rig.Root(), "e2e", "node")
	c.Env = append(os.Environ(), "SONIQ_API_KEY="+s.Org("live").Key)
	want := ""
	for _, way := range []string{"v1 sse", "v1 streamable"} {
		want += fmt.Sprintf(`{"way":%q,"code":-32601,"tools":%d}`+"\n", way, len(published))
	}
	if out := run(t, c); out != want {
		t.Errorf("got %s, want %s", out, want)
	}
}
