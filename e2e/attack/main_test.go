package attack

import (
	"testing"

	"soniq/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }
