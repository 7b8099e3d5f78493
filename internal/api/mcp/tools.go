package mcp

import "slices"

// catalogue lists the 24 tools of the contract in its order. Names and scopes are published and do not change; there are no others.
func catalogue() []*tool {
	return slices.Concat(callTools(), contactTools(), memoryTools(), userTools(), numberTools(), flowTools(), supervisorTools())
}
