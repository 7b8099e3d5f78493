//go:build race

package webhook

// townOrgs under the race detector, with which everything takes ten times as long: a tenth of the town.
const townOrgs = 20
