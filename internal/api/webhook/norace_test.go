//go:build !race

package webhook

import "time"

// townOrgs is the number of organisations of a largeFixture. townPatience is the longest accepted time until an event is
// delivered: less than the 30 s after which a request to a dead endpoint times out.
const (
	townOrgs     = 200
	townPatience = 20 * time.Second
)
