package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The SDK answers some requests with an HTTP error without a JSON-RPC error, with an error without a code, or with the id of another
// request. They are answered here, with a JSON-RPC error that has the id of the request.

// rpcRequest is a posted message in its parts.
type rpcRequest struct {
	ID     json.RawMessage `json:"id"`
	Method *string         `json:"method"`
	Params json.RawMessage `json:"params"`
}

// isCall reports whether the message expects an answer.
func (r rpcRequest) isCall() bool { return r.Method != nil && len(r.ID) > 0 }

// rpcFault is a JSON-RPC error response.
type rpcFault struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Error   jsonrpc.Error   `json:"error"`
}

func newFault(id json.RawMessage, code int64, message string) rpcFault {
	if len(id) == 0 || !strings.ContainsRune("\"-0123456789", rune(id[0])) {
		id = json.RawMessage("null") // JSON-RPC 2.0 §5: the id cannot be detected
	}
	return rpcFault{"2.0", id, jsonrpc.Error{Code: code, Message: message}}
}

// rpcRequests returns the messages of a body. A body that cannot be read has none.
func rpcRequests(body []byte) (all []rpcRequest, batch bool) {
	if trimmed := bytes.TrimLeft(body, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '[' {
		_ = json.Unmarshal(trimmed, &all)
		return all, true
	}
	var one rpcRequest
	if json.Unmarshal(body, &one) != nil {
		return nil, false
	}
	return []rpcRequest{one}, false
}

// paramTypes are the parameters of methods. Those of methods in paramsRequired must be given.
var (
	paramTypes = map[string]reflect.Type{
		"initialize": reflect.TypeFor[sdk.InitializeParams](), "ping": reflect.TypeFor[sdk.PingParams](),
		"server/discover": reflect.TypeFor[sdk.DiscoverParams](), "tools/list": reflect.TypeFor[sdk.ListToolsParams](),
		"tools/call": reflect.TypeFor[sdk.CallToolParamsRaw](), "prompts/list": reflect.TypeFor[sdk.ListPromptsParams](),
		"prompts/get": reflect.TypeFor[sdk.GetPromptParams](), "resources/list": reflect.TypeFor[sdk.ListResourcesParams](),
		"resources/templates/list": reflect.TypeFor[sdk.ListResourceTemplatesParams](),
		"resources/read":           reflect.TypeFor[sdk.ReadResourceParams](), "resources/subscribe": reflect.TypeFor[sdk.SubscribeParams](),
		"resources/unsubscribe": reflect.TypeFor[sdk.UnsubscribeParams](), "completion/complete": reflect.TypeFor[sdk.CompleteParams](),
		"logging/setLevel":     reflect.TypeFor[sdk.SetLoggingLevelParams](),
		"subscriptions/listen": reflect.TypeFor[sdk.SubscriptionsListenParams](),
	}
	paramsRequired = set("initialize", "tools/call", "prompts/get", "resources/read", "resources/subscribe", "resources/unsubscribe",
		"completion/complete", "logging/setLevel", "subscriptions/listen")
)

// fault returns the error of a request; nil if it has none that is found here.
func (r rpcRequest) fault() *rpcFault {
	if !r.isCall() {
		return nil
	}
	if !isEchoedID(r.ID) {
		f := newFault(r.ID, jsonrpc.CodeInvalidRequest,
			"id must be a text, or an integer between -2^53 and 2^53 that is written without a fraction and an exponent")
		return &f
	}
	if why := r.paramsFault(); why != "" {
		f := newFault(r.ID, jsonrpc.CodeInvalidParams, why)
		return &f
	}
	return nil
}

// beforeInitialize lists the known methods that a client may call before initialize.
var beforeInitialize = set("initialize", "ping", "server/discover")

// perRequestRevision is the member of params._meta with which a request of the stateless revision names its revision.
const perRequestRevision = "io.modelcontextprotocol/protocolVersion"

// uninitialized returns the error of a request before initialize, or the one that fault returns. The SDK answers such a request with the
// code 0, and opens a session for it.
func (r rpcRequest) uninitialized() *rpcFault {
	if f := r.fault(); f != nil || !r.isCall() || paramTypes[*r.Method] == nil || beforeInitialize[*r.Method] ||
		bytes.Contains(r.Params, []byte(perRequestRevision)) {
		return f
	}
	f := newFault(r.ID, jsonrpc.CodeInvalidRequest,
		*r.Method+" is not possible yet: send initialize first, and its Mcp-Session-Id with each request")
	return &f
}

// maxExactInteger is the highest integer that every JSON decoder keeps (RFC 8259 §6).
const maxExactInteger = 1<<53 - 1

// isEchoedID reports whether the SDK returns an id as it is: a text, or an integer in its usual form.
func isEchoedID(id json.RawMessage) bool {
	if id[0] == '"' {
		return true
	}
	n, err := strconv.ParseInt(string(id), 10, 64)
	return err == nil && strconv.FormatInt(n, 10) == string(id) && n >= -maxExactInteger && n <= maxExactInteger
}

// paramsFault returns why the parameters cannot be read; "" if they can.
func (r rpcRequest) paramsFault() string {
	kind, known := paramTypes[*r.Method]
	if !known {
		return ""
	}
	if len(r.Params) == 0 || string(r.Params) == "null" {
		if paramsRequired[*r.Method] {
			return "params are required"
		}
		return ""
	}
	err := json.Unmarshal(r.Params, reflect.New(kind).Interface())
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &wrong) && wrong.Field != "":
		return "params." + wrong.Field + " must not be a " + strings.Fields(wrong.Value + " value")[0]
	}
	return "params cannot be read"
}

// faultsOf returns the errors with which a post is answered; none if the SDK can answer it. No message of a batch with a fault is run.
func faultsOf(all []rpcRequest, of func(rpcRequest) *rpcFault) (faults []rpcFault) {
	found := false
	for _, r := range all {
		f := of(r)
		switch {
		case f != nil:
			found = true
			faults = append(faults, *f)
		case r.isCall():
			faults = append(faults, newFault(r.ID, jsonrpc.CodeInvalidRequest, "not run, because another message of the batch is refused"))
		}
	}
	if !found {
		return nil
	}
	return faults
}

// writeFaults answers a post with errors. From the stateless revision on, and if the session is missing (2025-06-18, "Session
// Management"), the HTTP status shows them too.
func writeFaults(w http.ResponseWriter, r *http.Request, faults []rpcFault, batch bool) {
	status := http.StatusOK
	if r.Header.Get("Mcp-Protocol-Version") >= statelessRevision || lacksSession(r) {
		status = http.StatusBadRequest
	}
	if batch {
		writeJSON(w, status, faults)
		return
	}
	writeJSON(w, status, faults[0])
}

func writeJSON(w http.ResponseWriter, status int, answer any) {
	b, err := encode(answer)
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Del("Content-Length")
	w.WriteHeader(status)
	_, _ = w.Write(b)
}

// refusalWriter holds back an answer of the SDK that refuses a request by HTTP only, so that it can be replaced.
type refusalWriter struct {
	http.ResponseWriter
	held *bytes.Buffer // nil: the answer is no refusal
}

// WriteHeader writes the status, unless the answer is a refusal in plain text.
func (w *refusalWriter) WriteHeader(status int) {
	if status == http.StatusBadRequest && strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		w.held = &bytes.Buffer{}
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write writes to the response, or keeps the text of a refusal.
func (w *refusalWriter) Write(p []byte) (int, error) {
	if w.held != nil {
		return w.held.Write(p)
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap returns the writer below, for http.ResponseController.
func (w *refusalWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// finish writes a refusal: by answer if it is one of a JSON-RPC message, else as an error without id (JSON-RPC 2.0 §5). A refused
// notification gets no error.
func (w *refusalWriter) finish(all []rpcRequest, answer func([]rpcFault)) {
	if w.held == nil {
		return
	}
	text := strings.TrimSpace(w.held.String())
	faults := faultsOf(all, func(r rpcRequest) *rpcFault { return r.refusal(text) })
	switch {
	case len(faults) > 0:
		answer(faults)
	case len(all) > 0 && isRefusal(text) && !hasCall(all):
		w.Header().Del("Content-Type")
		w.ResponseWriter.WriteHeader(http.StatusAccepted)
	default:
		writeJSON(w.ResponseWriter, http.StatusBadRequest, newFault(nil, codeOf(text), strings.TrimPrefix(text, malformedPayload)))
	}
}

// codeOf returns the JSON-RPC code of a refusal that names no message.
func codeOf(text string) int64 {
	if strings.HasPrefix(text, malformedPayload) {
		return jsonrpc.CodeParseError
	}
	return jsonrpc.CodeInvalidRequest
}

// Beginnings of the SDK's texts for a message that it refuses.
const (
	notHandled       = "JSON RPC not handled: "
	invalidRequest   = "invalid request: "
	malformedPayload = "malformed payload: "
)

func isRefusal(text string) bool {
	return strings.HasPrefix(text, notHandled) || strings.HasPrefix(text, invalidRequest)
}

func hasCall(all []rpcRequest) bool {
	for _, r := range all {
		if r.isCall() {
			return true
		}
	}
	return false
}

// refusal returns the error of a request that the SDK refused with a text; nil if the text is about another request.
func (r rpcRequest) refusal(text string) *rpcFault {
	if !r.isCall() {
		return nil
	}
	var f rpcFault
	switch {
	case text == fmt.Sprintf("%s%q unsupported", notHandled, *r.Method):
		f = newFault(r.ID, jsonrpc.CodeMethodNotFound, "unknown method "+*r.Method)
	case strings.HasPrefix(text, invalidRequest):
		f = newFault(r.ID, jsonrpc.CodeInvalidRequest, strings.TrimPrefix(text, invalidRequest))
	default:
		return nil
	}
	return &f
}

// withCode returns an error that has a JSON-RPC code. The SDK sends errors of other kinds with the code 0.
func withCode(err error) error {
	var known *jsonrpc.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known) && known.Code != 0:
		return err
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
}
