package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// toolCall is one call of a tool.
type toolCall struct {
	s         *Server
	t         *tool
	input     callInput
	sender    *sender
	ctx       context.Context
	args      schema
	createdID string // id of the created record
}

// callInput is a tool call as the client sent it.
type callInput struct {
	arguments json.RawMessage
	req       *sdk.CallToolRequest // as parsed by the SDK; nil on the fast path
}

// callOperation calls an operation and renames the fields in its errors to those of the tool. The extra scopes apply
// to this call only.
func (c *toolCall) callOperation(id string, r operationRequest, lent ...access.Scope) (schema, *toolError) {
	out, f := c.s.callOperation(c.ctx, id, r, lent...)
	if f != nil {
		f.renameFields(c.t)
		return nil, f
	}
	if made, ok := out["id"].(string); ok {
		c.createdID = made
	}
	return out, nil
}

// callOperation calls an operation as the principal in the context and decodes its answer. The extra scopes apply to
// this call only.
func (s *Server) callOperation(ctx context.Context, id string, r operationRequest, lent ...access.Scope) (schema, *toolError) {
	o, ok := s.operations[id]
	if !ok {
		return nil, newToolError(op.Fail("not_enabled", "operation "+id+" is not offered"))
	}
	if len(lent) > 0 {
		ctx = withScopes(ctx, lent...)
	}
	h, err := r.http(ctx, o)
	if err != nil {
		return nil, newToolError(op.Unexpected(err))
	}
	w := &responseRecorder{header: http.Header{}}
	s.cfg.API.Operate(w, h)
	if w.status >= 400 {
		return nil, w.toolError()
	}
	out, f := w.decoded()
	for _, p := range s.secrets[id] {
		p.remove(out)
	}
	return out, f
}

// http returns the HTTP request for the operation.
func (r operationRequest) http(ctx context.Context, o op.Operation) (*http.Request, error) {
	where := op.Prefix + o.Path
	for name, v := range r.path {
		where = strings.ReplaceAll(where, "{"+name+"}", url.PathEscape(v))
	}
	var body []byte
	if r.body != nil || o.Method == http.MethodPost || o.Method == http.MethodPatch {
		fields := r.body
		if fields == nil {
			fields = schema{}
		}
		var err error
		if body, err = json.Marshal(fields); err != nil {
			return nil, err
		}
	}
	h, err := http.NewRequestWithContext(ctx, o.Method, where+"?"+r.query.Encode(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	h.Header = r.header
	if h.Header == nil {
		h.Header = http.Header{}
	}
	if o.Method == http.MethodPatch {
		h.Header.Set("Content-Type", "application/merge-patch+json")
	} else if body != nil {
		h.Header.Set("Content-Type", "application/json")
	}
	return h, nil
}

// responseRecorder stores the answer of an operation.
type responseRecorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header returns the headers of the answer.
func (w *responseRecorder) Header() http.Header { return w.header }

// WriteHeader stores the first status.
func (w *responseRecorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

// Write stores a part of the body.
func (w *responseRecorder) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}

// decoded decodes the answer; without a body it is empty. Numbers keep their original text.
func (w *responseRecorder) decoded() (schema, *toolError) {
	out := schema{}
	if w.body.Len() == 0 {
		return out, nil
	}
	d := json.NewDecoder(&w.body)
	d.UseNumber()
	if err := d.Decode(&out); err != nil {
		return nil, newToolError(op.Unexpected(err))
	}
	return out, nil
}

// writeAudit writes a line of the audit log without waiting for fsync, because the operation has already committed
// its own line.
func (s *Server) writeAudit(ctx context.Context, l op.AuditLine) error {
	return s.cfg.DB.TxRelaxed(ctx, func(tx db.Querier) error { return op.WriteAudit(ctx, tx, db.At(s.cfg.Clock.Now()), l) })
}
