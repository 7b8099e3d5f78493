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

// receive stands before everything a client asks: somebody must be known to ask, and what panics answers an error.
func (s *Server) receive(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (result sdk.Result, err error) {
		defer func() {
			if cause := recover(); cause != nil {
				s.Log.Error("tool server panicked", "method", method, "err", cause, "stack", string(debug.Stack()))
				result, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "something went wrong on our side"}
			}
		}()
		v := visitOf(ctx, req.GetExtra())
		if v == nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "nobody is known to ask"}
		}
		s.metas.learn(v.meta)
		result, err = next(context.WithValue(ctx, visitKey{}, v), method, req)
		if list, ok := result.(*sdk.ListToolsResult); ok && err == nil {
			s.granted(list, v)
		}
		return result, err
	}
}

// granted leaves of the list of tools those the credential may use, in the order of the contract, and before them what is not of it.
func (s *Server) granted(list *sdk.ListToolsResult, v *visit) {
	list.Tools = slices.DeleteFunc(append([]*sdk.Tool{}, list.Tools...), func(t *sdk.Tool) bool { return s.tools[t.Name] != nil })
	for _, t := range s.order {
		if holds(v.principal, t.scope) {
			list.Tools = append(list.Tools, t.listed)
		}
	}
}

// progress tells a client that wants to know that something slow has begun.
func (c *call) progress(what string) {
	if c.asked.req == nil {
		return
	}
	token := c.asked.req.Params.GetProgressToken()
	if token == nil {
		return
	}
	_ = c.asked.req.Session.NotifyProgress(c.ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Message: what, Progress: 0, Total: 1})
}

func errInternal(err error) *op.Error { return op.Unexpected(fmt.Errorf("write result: %w", err)) }
