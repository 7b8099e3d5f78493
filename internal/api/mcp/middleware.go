package mcp

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"soniq/internal/platform/op"
)

// receiveMiddleware runs before every request to the SDK: it requires a known sender and converts a panic to an
// error.
func (s *Server) receiveMiddleware(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (result sdk.Result, err error) {
		defer func() {
			if cause := recover(); cause != nil {
				s.cfg.Log.Error("tool server panicked", "method", method, "err", cause, "stack", string(debug.Stack()))
				result, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "something went wrong on our side"}
			}
		}()
		v := senderOf(ctx, req.GetExtra())
		if v == nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "nobody is known to ask"}
		}
		s.clientMetas.add(v.meta)
		result, err = next(context.WithValue(ctx, senderKey{}, v), method, req)
		if list, ok := result.(*sdk.ListToolsResult); ok && err == nil {
			s.filterTools(list, v)
		}
		return result, withCode(err)
	}
}

// filterTools limits the list to the tools the credential may use, in the published order. Tools that are not part of
// the published set come first.
func (s *Server) filterTools(list *sdk.ListToolsResult, v *sender) {
	list.Tools = slices.DeleteFunc(append([]*sdk.Tool{}, list.Tools...), func(t *sdk.Tool) bool { return s.tools[t.Name] != nil })
	for _, t := range s.catalogue {
		if hasScope(v.principal, t.scope) {
			list.Tools = append(list.Tools, t.encodedSpec)
		}
	}
}

// progress notifies a client that requested progress that a slow step has begun.
func (c *toolCall) progress(what string) {
	if c.input.req == nil {
		return
	}
	token := c.input.req.Params.GetProgressToken()
	if token == nil {
		return
	}
	_ = c.input.req.Session.NotifyProgress(c.ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Message: what, Progress: 0,
		Total: 1})
}

func internalError(err error) *op.Error { return op.Unexpected(fmt.Errorf("write result: %w", err)) }
