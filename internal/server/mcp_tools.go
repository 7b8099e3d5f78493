//go:build !conformance

package server

import "soniq/internal/api/mcp"

// toolExtension returns nil: the server has only the tools of the contract.
func toolExtension() mcp.Extension { return nil }
