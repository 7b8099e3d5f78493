//go:build !race

package webhook

import "time"

// townOrgs is how many organisations a town has, and townPatience how long one event may take into it.
const (
	townOrgs     = 200
	townPatience = 5 * time.Second
)
