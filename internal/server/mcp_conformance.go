//go:build conformance

package server

import (
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"soniq/e2e/mcp/everything"
)

// extendTools offers beside the tools of the contract what the official conformance suite asks for; tests alone are built so.
func extendTools() func(*sdk.ServerOptions) func(*sdk.Server) { return everything.Extend }
