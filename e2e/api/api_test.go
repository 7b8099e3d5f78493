// Package api_test checks the API of the running binary against its own OpenAPI description and against the contract.
package api_test

import (
	"testing"
	"time"

	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// TestAPI_SharedServer runs the tests that leave a server running against one server per database, both databases at
// once.
func TestAPI_SharedServer(t *testing.T) {
	limit.Budget(t, 300*time.Second, "asks every operation in many ways, one after the other")
	rig.Either(t, rig.Options{Alone: true, Load: rig.Speech, Flags: []string{"--transcriber", "off"}}, func(t *testing.T, s *rig.Server) {
		t.Parallel()
		st := newStage(t, s)
		for _, c := range []struct {
			name string
			run  func(*testing.T, *stage)
		}{
			{"every operation asks for its scopes", scopes},
			{"the twenty published operations are declared", published},
			{"nothing answers without a credential", anonymous},
			{"keys work in their environment only", environments},
			{"other organisations' things are not found", tenants},
			{"nor by ids in queries and bodies", foreignEverywhere},
			{"colleagues' calls are not found", colleagues},
			{"everything through its life", scenario},
			{"bad requests are refused", requests},
			{"numbers are read alike everywhere", numbersAlike},
			{"requests can be repeated", repeats},
			{"lists are read in pages", paging},
			{"lists have much in common", lists},
			{"records have versions", records},
			{"people reach what is theirs", personal},
			{"keys that are of no use", uselessKeys},
			{"changes are noted", audited},
			{"every change can be repeated", everyRepeat},
			{"lists are read while they grow", walks},
			{"recordings are fetched in ranges", audio},
			{"pages beside the operations", pages},
		} {
			t.Run(c.name, func(t *testing.T) { c.run(t, st) })
		}
	})
}
