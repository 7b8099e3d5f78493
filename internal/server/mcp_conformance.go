//go:build conformance

package server

import (
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"soniq/e2e/mcp/everything"
	"soniq/internal/api/mcp"
)

// toolExtension adds the tools that the official conformance suite calls. Only tests are built with this file.
func toolExtension() mcp.Extension { return conformanceTools{} }

type conformanceTools struct{}

// Extend implements mcp.Extension.
func (conformanceTools) Extend(o *sdk.ServerOptions) (offer func(*sdk.Server)) {
	return everything.Extend(o)
}
