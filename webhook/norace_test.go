//go:build !race

package webhook

// townOrgs is how many organisations a town has.
const townOrgs = 200
