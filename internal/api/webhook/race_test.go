//go:build race

package webhook

import "time"

// The race detector makes everything, and SQLite above all, ten to twenty times slower: a small town.
const (
	townOrgs     = 4
	townPatience = 20 * time.Second
)
