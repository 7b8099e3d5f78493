//go:build !conformance

package server

import sdk "github.com/modelcontextprotocol/go-sdk/mcp"

// extendTools returns nil: the server has only the tools of the contract.
func extendTools() func(*sdk.ServerOptions) func(*sdk.Server) { return nil }
