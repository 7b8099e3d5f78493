package mcp

import "slices"

// catalogue returns the 24 tools in the published order. Names and scopes are published and do not change.
func catalogue() []*tool {
	return slices.Concat(callTools(), contactTools(), memoryTools(), userTools(), numberTools(), flowTools(), supervisorTools())
}
