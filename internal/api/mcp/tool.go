package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"soniq/internal/platform/access"
	"soniq/internal/platform/op"
)

// tool is one of the 24 published tools. It calls one operation, or several.
type tool struct {
	name, title, about string
	scope              access.Scope
	hints              hints
	operation          string // main operation
	args               []argument
	shape              shape
	// resultSchema returns the schema of the result. nil: the schema of the operation, shaped.
	resultSchema func(*document, *Server) (schema, error)
	// run executes the tool. nil: it calls the operation.
	run func(*toolCall) (schema, *toolError)
	// question returns the question to confirm the action; nil or a question without text: no confirmation.
	question func(*toolCall) question
	// summarize returns the result as a sentence.
	summarize   func(schema) string
	spec        *sdk.Tool // in the form of the SDK
	encodedSpec *sdk.Tool // the same with encoded schemas
}

// hints are the annotations of a tool: read-only, destructive, idempotent, open world.
type hints struct{ readOnly, destructive, idempotent, openWorld bool }

var (
	readOnlyHints = hints{readOnly: true, idempotent: true}
	lookupHints   = hints{readOnly: true, idempotent: true, openWorld: true}
	createHints   = hints{}
	updateHints   = hints{idempotent: true, destructive: true}
)

// shape maps the answer of an operation to the result: wrapped under a name, or selected members under other names.
// The zero shape is the answer itself.
type shape struct {
	wrapIn  string
	members [][2]string // name in the result, name in the answer
}

func listShape(name string) shape {
	return shape{members: [][2]string{{name, "data"}, {"next_cursor", "next_cursor"}}}
}

// apply shapes an answer.
func (s shape) apply(answer schema) schema {
	if s.wrapIn != "" {
		return schema{s.wrapIn: answer}
	}
	if s.members == nil {
		return answer
	}
	out := schema{}
	for _, m := range s.members {
		if v, ok := answer[m[1]]; ok {
			out[m[0]] = v
		}
	}
	return out
}

// schema shapes the schema of an answer.
func (s shape) schema(answer schema) schema {
	properties, _ := answer["properties"].(schema)
	needed := map[any]bool{}
	all, _ := answer["required"].([]any)
	for _, name := range all {
		needed[name] = true
	}
	out, required := schema{}, []any{}
	if s.wrapIn != "" {
		out[s.wrapIn], required = answer, append(required, s.wrapIn)
	}
	for _, m := range s.members {
		out[m[0]] = properties[m[1]]
		if needed[m[1]] {
			required = append(required, m[0])
		}
	}
	if s.wrapIn == "" && s.members == nil {
		for name, v := range properties {
			out[name] = v
		}
		required = all
	}
	return objectSchema(out, required...)
}

func objectSchema(properties schema, required ...any) schema {
	if required == nil {
		required = []any{}
	}
	return schema{"type": "object", "properties": properties, "required": required}
}

// describe returns the SDK form of a tool.
func (s *Server) describe(doc *document, t *tool) (*sdk.Tool, error) {
	in, err := s.input(doc, t)
	if err != nil {
		return nil, err
	}
	make := t.resultSchema
	if make == nil {
		make = shapedSchema(t)
	}
	out, err := make(doc, s)
	if err != nil {
		return nil, err
	}
	properties, _ := out["properties"].(schema)
	properties["untrusted"] = schema{"type": "array", "items": schema{"type": "string"}}
	properties["truncated"] = schema{"type": "boolean"}
	no := func(b bool) *bool { return &b }
	return &sdk.Tool{Name: t.name, Title: t.title, Description: t.about, InputSchema: in, OutputSchema: doc.output(out),
		Annotations: &sdk.ToolAnnotations{Title: t.title, ReadOnlyHint: t.hints.readOnly, DestructiveHint: no(t.hints.destructive),
			IdempotentHint: t.hints.idempotent, OpenWorldHint: no(t.hints.openWorld)},
		Meta: sdk.Meta{"soniq/scope": string(t.scope)}}, nil
}

// shapedSchema returns the schema function of a tool that returns the shaped answer of its operation.
func shapedSchema(t *tool) func(*document, *Server) (schema, error) {
	return func(doc *document, s *Server) (schema, error) {
		answer, err := doc.result(s.operations[t.operation])
		if err != nil {
			return nil, err
		}
		return t.shape.schema(answer), nil
	}
}

// input returns the schema of the arguments.
func (s *Server) input(doc *document, t *tool) (schema, error) {
	properties, required := schema{}, []any{}
	for _, a := range t.args {
		m := a.schema
		if m == nil {
			o := s.operations[t.operation]
			if a.operation != "" {
				o = s.operations[a.operation]
			}
			var err error
			if m, err = doc.input(o, a); err != nil {
				return nil, fmt.Errorf("argument %s: %w", a.name, err)
			}
		}
		if a.doc != "" {
			m["description"] = a.doc
		}
		if a.required {
			required = append(required, a.name)
		}
		properties[a.name] = m
	}
	out := objectSchema(properties, required...)
	out["additionalProperties"] = false
	return out, nil
}

// handler returns the SDK handler of a tool: checks of the arguments, confirmation, operations, audit log.
func (s *Server) handler(t *tool) sdk.ToolHandler {
	return func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		v := senderOf(ctx, req.Extra)
		if v == nil {
			return nil, fmt.Errorf("nobody is known to ask")
		}
		c := &toolCall{s: s, t: t, input: callInput{req.Params.Arguments, req}, sender: v, ctx: v.operationContext(ctx, t.name,
			clientName(req.ClientInfo()))}
		return c.execute(), nil
	}
}

// execute returns the result of a call and writes it to the audit log, unless the result is a question to the person.
func (c *toolCall) execute() *sdk.CallToolResult {
	result, f := c.attempt()
	if f == nil && result.InputRequests != nil {
		return result // the person has to answer first
	}
	c.audit(f)
	if f != nil {
		return f.result()
	}
	return result
}

// attempt returns the result of a call, a question to the person, or an error.
func (c *toolCall) attempt() (*sdk.CallToolResult, *toolError) {
	if f := c.parseArgs(); f != nil {
		return nil, f
	}
	if !hasScope(c.sender.principal, c.t.scope) {
		return nil, newToolError(c.s.missingScope(Paths[0], c.sender.principal, c.t.scope))
	}
	if c.t.question != nil {
		question, f := c.confirm()
		if f != nil || question != nil {
			return question, f
		}
	}
	run := c.t.run
	if run == nil {
		run = (*toolCall).runOperation
	}
	out, f := run(c)
	if f != nil {
		return nil, f
	}
	return c.fit(out)
}

// runOperation calls the operation of the tool with its arguments.
func (c *toolCall) runOperation() (schema, *toolError) {
	answer, f := c.callOperation(c.t.operation, c.buildRequest())
	if f != nil {
		return nil, f
	}
	return c.t.shape.apply(answer), nil
}

// audit writes a line of the audit log.
func (c *toolCall) audit(f *toolError) {
	status, code := http.StatusOK, ""
	if f != nil {
		status, code = f.status, f.code
	}
	c.s.audit(c.ctx, c.sender.principal, "tools."+c.t.name, c.recordID(), status, code)
}

func (s *Server) audit(ctx context.Context, p access.Principal, operation, record string, status int, code string) {
	ctx = context.WithoutCancel(ctx)
	l := op.AuditLine{Org: p.OrgID, Operation: operation, Target: op.Target(ctx), KeyID: p.KeyID, KeyName: p.KeyName,
		Credential: string(p.Kind), UserID: p.UserID, Source: p.Source.String(), Record: record, Status: status, Code: code}
	if p.HomeID != "" {
		l.Actor, l.Child = p.HomeID, p.OrgID
	}
	if err := s.writeAudit(ctx, l); err != nil {
		s.cfg.Log.Error("tool call not written to the audit log", "operation", operation, "request", op.RequestID(ctx), "err", err)
	}
}

// auditDenied writes a line of the audit log for a call that HTTP refused because of a missing scope.
func (s *Server) auditDenied(ctx context.Context, v *sender, t *tool) {
	s.audit(v.operationContext(ctx, t.name, "unnamed client"), v.principal, "tools."+t.name, "", http.StatusForbidden, "insufficient_scope")
}

// text returns strings and JSON numbers as they are, null as "", and other values as JSON.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case nil:
		return ""
	}
	b, _ := json.Marshal(v)
	return string(b)
}
