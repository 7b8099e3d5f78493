// Package cluster tests several nodes on one PostgreSQL database.
package cluster

import (
	"testing"

	"soniq/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }
