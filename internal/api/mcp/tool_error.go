package mcp

import (
	"encoding/json"
	"maps"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"soniq/internal/platform/op"
)

// toolError is the error of a tool: the problem (RFC 9457) of the REST API, with advice for the assistant.
type toolError struct {
	status  int
	code    string
	problem schema
}

func newToolError(e *op.Error) *toolError {
	w := &responseRecorder{}
	p := schema{"code": e.Code, "detail": e.Detail}
	maps.Copy(p, e.Extra)
	if len(e.Fields) > 0 {
		p["errors"] = e.Fields
	}
	w.status = e.Status()
	return &toolError{status: w.status, code: e.Code, problem: p}
}

// toolError decodes the problem that an operation returned.
func (w *responseRecorder) toolError() *toolError {
	var p schema
	if json.Unmarshal(w.body.Bytes(), &p) != nil {
		return newToolError(op.Fail("internal", ""))
	}
	code, _ := p["code"].(string)
	for _, name := range []string{"type", "title", "status"} {
		delete(p, name)
	}
	if after := w.header.Get("Retry-After"); after != "" {
		p["retry_after_seconds"] = json.Number(after)
	}
	return &toolError{status: w.status, code: code, problem: p}
}

// renameFields replaces the operation's field names in violations by those of the tool.
func (f *toolError) renameFields(t *tool) {
	all, _ := f.problem["errors"].([]any)
	for _, v := range all {
		violation, _ := v.(schema)
		for _, a := range t.args {
			if a.target == violation["field"] && a.target != a.name {
				violation["field"] = a.name
			}
		}
	}
}

// advice contains texts for assistants, for codes whose REST help text does not fit.
var advice = map[string]string{
	"insufficient_scope":      "The person has to grant the scopes in required_scopes to this connection. Do not try again before that.",
	"wrong_environment":       "The key of this connection belongs to the other environment. Tell the person.",
	"unknown_field":           "Correct the arguments listed in errors and call the tool again.",
	"invalid_query":           "Correct the arguments listed in errors and call the tool again.",
	"validation_failed":       "Correct the arguments listed in errors and call the tool again.",
	"invalid_cursor":          "Call the tool again without cursor; a cursor belongs to the other arguments it was got with.",
	"rate_limited":            "Wait for retry_after_seconds, then call the tool again; ask for more in one call.",
	"not_found":               "Check the identifier: take it from a list tool rather than guessing.",
	"contact_not_found":       "No source knows this person. Do not invent details; offer to create the contact.",
	"internal":                "Try once more; if it stays, tell the person the request_id.",
	"declined":                "The person said no. Nothing was done. Do not try again unless they ask for it.",
	"confirmation_required":   "Ask the person; when they agree, call the tool again with confirm: true.",
	"person_required":         "A person has to confirm this, and this client cannot ask. Tell the person to do it themselves, or to use a client that shows questions.",
	"result_too_large":        "Ask for less: a smaller limit, a shorter time, or one record.",
	"idempotency_in_progress": "The first call with this key still runs. Look whether it had its effect before you call again.",
}

// result converts the error to a tool result. It has no structured content, because that would have to match the
// tool's output schema.
func (f *toolError) result() *sdk.CallToolResult {
	what := advice[f.code]
	if what == "" {
		_, _, what, _ = op.Help(f.code)
	}
	p := maps.Clone(f.problem)
	if p == nil {
		p = schema{}
	}
	p["code"], p["what_to_do"] = f.code, what
	b, _ := json.Marshal(p)
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: string(b)}},
		Meta: sdk.Meta{"soniq/code": f.code}}
}

// declined is the error for a person's refusal.
func declined() *toolError {
	return &toolError{status: 403, code: "declined", problem: schema{"detail": "the person declined"}}
}

func confirmationRequired(question string) *toolError {
	return &toolError{status: 422, code: "confirmation_required", problem: schema{"detail": question}}
}

// personRequired is the error for an action that a person has to confirm, if the client cannot ask.
func personRequired(question string) *toolError {
	return &toolError{status: 403, code: "person_required", problem: schema{"detail": question}}
}
