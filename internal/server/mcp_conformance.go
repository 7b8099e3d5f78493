//go:build conformance

package server

import (
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"soniq/e2e/mcp/everything"
)

// extendTools adds the tools that the official conformance suite calls. Only tests are built with this file.
func extendTools() func(*sdk.ServerOptions) func(*sdk.Server) { return everything.Extend }
