//go:build race

package webhook

import "time"

// The race detector makes everything, and SQLite above all, ten to twenty times slower: a small town, and more patience, but less
// than the 30 s after which a dead endpoint gives its place back.
const (
	townOrgs     = 4
	townPatience = 20 * time.Second
)
