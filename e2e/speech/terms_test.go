package speech

import (
	"strings"
	"testing"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// Names outside every dictionary are recognised in calls of the organisation that has configured them, and in no
// other: one worker recognises the calls of both, one after the other.
func TestTerms_PerOrganisation(t *testing.T) {
	t.Parallel()
	rig.Either(t, rig.Options{}, wantTerms)
}

// wantTerms speaks names in the calls of two organisations, and checks in which of them they are recognised.
func wantTerms(t *testing.T, s *rig.Server) {
	company, stranger := fixture.NewOrg(s), fixture.NewOrg(s)
	company.Want(201, "POST", "/users", map[string]any{"email": "ilse@example.com", "first_name": "Ilse", "last_name": "Vandermeer", "role": "agent"}, nil)
	company.Want(200, "PATCH", "/organization", map[string]any{"transcripts": map[string]any{
		"vocabulary": []any{map[string]any{"term": "Zyntrix"}}}}, nil)
	company.Want(201, "POST", "/queues", map[string]any{"name": "Zyntrix repairs"}, nil)
	var d dialogue
	d.ID = "terms"
	for _, turn := range [][2]string{{"caller", "This is Ilse Vandermeer about your Zyntrix."}, {"agent", "Please wait a moment."}} {
		d.Turns = append(d.Turns, struct{ Speaker, Text string }{turn[0], turn[1]})
	}
	for _, c := range []struct {
		at    *fixture.Org
		known bool
	}{{company, true}, {stranger, false}} {
		heard := c.at.Transcript(callWithDialogue(c.at, d))["caller"]
		t.Logf("heard: %s", heard)
		for _, name := range []string{"Ilse Vandermeer", "Zyntrix"} {
			if strings.Contains(heard, name) != c.known {
				t.Errorf("%q is in %q: want %v", name, heard, c.known)
			}
		}
	}
}
