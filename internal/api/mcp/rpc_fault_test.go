package mcp

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// An id comes back byte for byte, or the request is refused (https://github.com/BloopAI/vibe-kanban/issues/3232).
func TestRPCRequest_ID(t *testing.T) {
	t.Parallel()
	for id, good := range map[string]bool{`1`: true, `0`: true, `-1`: true, `9007199254740991`: true, `-9007199254740991`: true, `"a"`: true, `""`: true,
		`"9007199254740993"`: true, `9007199254740992`: false, `9007199254740993`: false, `-9007199254740993`: false, `1.5`: false, `1.0`: false, `1e2`: false,
		`-0`: false, `99999999999999999999`: false, `null`: false, `true`: false, `[]`: false, `{}`: false} {
		all, batch := rpcRequests([]byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`))
		faults := faultsOf(all, rpcRequest.fault)
		if batch || (len(faults) == 0) != good {
			t.Errorf("%s: %v", id, faults)
		}
		if len(faults) == 0 {
			continue
		}
		want := "null"
		if strings.ContainsAny(id[:1], "-0123456789") {
			want = id
		}
		if f := faults[0]; string(f.ID) != want || f.Error.Code != jsonrpc.CodeInvalidRequest {
			t.Errorf("%s: id %s, code %d", id, f.ID, f.Error.Code)
		}
	}
}

// Parameters that the SDK cannot read have an error with a code, which names no types of Go.
func TestRPCRequest_Params(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		`"method":"tools/call","params":{"name":5}`:                   "params.name must not be a number",
		`"method":"tools/call","params":[]`:                           "params cannot be read",
		`"method":"tools/call"`:                                       "params are required",
		`"method":"tools/call","params":null`:                         "params are required",
		`"method":"prompts/get","params":{"name":"x","arguments":5}`:  "params.arguments must not be a number",
		`"method":"resources/read","params":{"uri":{}}`:               "params.uri must not be a object",
		`"method":"initialize","params":{"protocolVersion":true}`:     "params.protocolVersion must not be a bool",
		`"method":"logging/setLevel","params":{"level":1}`:            "params.level must not be a number",
		`"method":"tools/list","params":{"cursor":1}`:                 "params.cursor must not be a number",
		`"method":"tools/list"`:                                       "",
		`"method":"tools/call","params":{"name":"x","arguments":"y"}`: "",
		`"method":"nonsense","params":5`:                              "",
	} {
		all, _ := rpcRequests([]byte(`{"jsonrpc":"2.0","id":"a",` + message + `}`))
		got := ""
		for _, f := range faultsOf(all, rpcRequest.fault) {
			got = f.Error.Message
			if f.Error.Code != jsonrpc.CodeInvalidParams || string(f.ID) != `"a"` {
				t.Errorf("%s: %+v", message, f)
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", message, got, want)
		}
	}
}

// What the SDK refuses by HTTP gets a JSON-RPC error with the id of the request.
//
// https://github.com/modelcontextprotocol/python-sdk/issues/3193, https://github.com/modelcontextprotocol/go-sdk/issues/976
func TestServeChecked_RefusalsOfSDK(t *testing.T) {
	t.Parallel()
	refuse := func(text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, text, http.StatusBadRequest) })
	}
	const unknown, notice = `{"jsonrpc":"2.0","id":7,"method":"a/b"}`, `{"jsonrpc":"2.0","method":"a/b"}`
	for _, c := range []struct {
		body, text, want string
		status           int
	}{
		{unknown, `JSON RPC not handled: "a/b" unsupported`, `{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"unknown method a/b"}}`, 200},
		{notice, `JSON RPC not handled: "a/b" unsupported`, ``, 202},
		{unknown, `invalid request: unexpected id for "a/b"`, `{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"unexpected id for \"a/b\""}}`, 200},
		{unknown, `Bad Request: something else`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Bad Request: something else"}}`, 400},
		{`xx`, `malformed payload: x`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}`, 400},
		{`[` + unknown + `,{"jsonrpc":"2.0","id":"x","method":"ping"},` + notice + `]`, `JSON RPC not handled: "a/b" unsupported`,
			`[{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"unknown method a/b"}},{"jsonrpc":"2.0","id":"x","error":{"code":-32600,"message":"not run, because another message of the batch is refused"}}]`, 200},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/mcp", nil)
		r.Header.Set("Mcp-Session-Id", "x")
		serveChecked(w, r, &sender{body: []byte(c.body)}, refuse(c.text))
		if got := w.Body.String(); got != c.want || w.Code != c.status {
			t.Errorf("%s: %d %s, want %d %s", c.body, w.Code, got, c.status, c.want)
		}
		if kind := w.Header().Get("Content-Type"); c.status == 200 && kind != "application/json" {
			t.Errorf("%s: %s", c.body, kind)
		}
	}
}

// No error has the code 0.
func TestWithCode(t *testing.T) {
	t.Parallel()
	known := &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "x"}
	for _, err := range []error{errors.New("plain"), &jsonrpc.Error{Message: "no code"}, known, fmt.Errorf("wrapped: %w", known)} {
		var got *jsonrpc.Error
		if !errors.As(withCode(err), &got) || got.Code == 0 {
			t.Errorf("%v: %v", err, got)
		}
	}
	if withCode(nil) != nil {
		t.Error("nil is an error")
	}
}

// A limit without a fraction is an integer, however it is written (https://github.com/dmtrKovalenko/fff/issues/328).
func TestParseArgs_IntegersWithoutFraction(t *testing.T) {
	t.Parallel()
	for text, good := range map[string]bool{"5": true, "5.0": true, "5e0": true, "0.5E1": true, "5.5": false, `"5"`: false, "51.0": false, "0.0": false, "-5.0": false} {
		c := &toolCall{t: &tool{name: "x", args: limitArg(inQuery)}, input: callInput{arguments: []byte(`{"limit":` + text + `}`)}}
		if f := c.parseArgs(); (f == nil) != good {
			t.Errorf("%s: %+v", text, f)
		} else if good && fmt.Sprint(c.args["limit"]) != "5" {
			t.Errorf("%s is read as %v", text, c.args["limit"])
		}
	}
}
