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
type call struct {
	s     *Server
	t     *tool
	asked asking
	visit *visit
	ctx   context.Context
	args  schema
	made  string // id of the created record
}

// callInput is a tool call as the client sent it.
type asking struct {
	arguments json.RawMessage
	req       *sdk.CallToolRequest // as parsed by the SDK; nil on the fast path
}

// callOperation calls an operation and renames the fields in its errors to those of the tool. The extra scopes apply
// to this call only.
func (c *call) use(id string, r request, lent ...access.Scope) (schema, *fault) {
	out, f := c.s.use(c.ctx, id, r, lent...)
	if f != nil {
		f.rename(c.t)
		return nil, f
	}
	if made, ok := out["id"].(string); ok {
		c.made = made
	}
	return out, nil
}

// callOperation calls an operation as the principal in the context and decodes its answer. The extra scopes apply to
// this call only.
func (s *Server) use(ctx context.Context, id string, r request, lent ...access.Scope) (schema, *fault) {
	o, ok := s.operations[id]
	if !ok {
		return nil, failed(op.Fail("not_enabled", "operation "+id+" is not offered"))
	}
	if len(lent) > 0 {
		ctx = lend(ctx, lent...)
	}
	h, err := r.http(ctx, o)
	if err != nil {
		return nil, failed(op.Unexpected(err))
	}
	w := &recorder{header: http.Header{}}
	s.Operate(w, h)
	if w.status >= 400 {
		return nil, w.fault()
	}
	return w.decoded()
}

// http returns the HTTP request for the operation.
func (r request) http(ctx context.Context, o op.Operation) (*http.Request, error) {
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
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header returns the headers of the answer.
func (w *recorder) Header() http.Header { return w.header }

// WriteHeader stores the first status.
func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

// Write stores a part of the body.
func (w *recorder) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}

// decoded decodes the answer; without a body it is empty. Numbers keep their original text.
func (w *recorder) decoded() (schema, *fault) {
	out := schema{}
	if w.body.Len() == 0 {
		return out, nil
	}
	d := json.NewDecoder(&w.body)
	d.UseNumber()
	if err := d.Decode(&out); err != nil {
		return nil, failed(op.Unexpected(err))
	}
	return out, nil
}

// writeAudit writes a line of the audit log without waiting for fsync, because the operation has already committed
// its own line.
func (s *Server) write(ctx context.Context, l op.AuditLine) error {
	return s.DB.TxRelaxed(ctx, func(tx db.Querier) error { return op.WriteAudit(ctx, tx, db.At(s.Now()), l) })
}
