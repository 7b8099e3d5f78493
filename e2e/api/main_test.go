package api_test

import (
	"runtime/debug"
	"testing"

	"soniq/e2e/rig"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(800) // the compiled schemas of all operations are large and live long
	rig.Main(m)
}
