//go:build !race

package webhook

import "time"

// townOrgs is how many organisations a town has, and townPatience how long one event may take into it: less than the 30 s after
// which a dead endpoint gives its place back.
const (
	townOrgs     = 200
	townPatience = 20 * time.Second
)
