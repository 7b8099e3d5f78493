package main

import (
	"time"

	"soniq/mcp"
	"soniq/op"
)

// openTools serves the tools for assistants beside the operations they are views of.
func (n *node) openTools() {
	h := n.house
	n.tools = mcp.New(mcp.Config{Operations: n.rest.Operations, Document: n.rest.Document, Operate: n.rest.Operate, Admit: n.rest.Admit,
		Charge: n.rest.Corridor.Charge, DB: h.db, Log: h.log, Now: time.Now, Key: h.seal.Key("questions of tools"), BaseURL: h.config.BaseURL,
		Origins: list(h.config.CORSOrigins), Version: op.Version})
	for _, path := range mcp.Paths {
		n.rest.Handle(path, n.tools)
	}
}

// closeTools ends the sessions of assistants.
func (n *node) closeTools() {
	if n.tools != nil {
		n.tools.Close()
	}
}
