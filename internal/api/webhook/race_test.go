//go:build race

package webhook

import "time"

// A smaller fixture, because the race detector makes everything, above all SQLite, ten to twenty times slower.
const (
	townOrgs     = 4
	townPatience = 20 * time.Second
)
