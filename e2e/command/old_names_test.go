package command_test

import (
	"strings"
	"testing"

	"soniq/e2e/rig"
)

// TestOldNames_WorkAsBefore runs the operator's commands under the names of earlier versions beside a server. Where the answer does not differ
// from call to call it is that of the present name.
func TestOldNames_WorkAsBefore(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Flags: []string{"--transcriber", "off", "--writer", "off"}, Env: map[string]string{"SONIQ_ASSISTANT": "off"}})
	org := s.Command("org", "create", "--name", "Old", "--country", "GB")
	if !orgLine.MatchString(org + "\n") {
		t.Errorf("org create: %q", org)
	}
	if key := s.Command("key", "create", "--org", org, "--scopes", "all"); !keyLine["live"].MatchString(key + "\n") {
		t.Errorf("key create: %q", key)
	}
	if link := s.Command("users", "add", "ada@example.com", "-org", org); !strings.Contains(link, "http") {
		t.Errorf("users add: %q", link)
	}
	if link := s.Command("users", "password", "ada@example.com", "--org", org); !strings.Contains(link, "http") {
		t.Errorf("users password: %q", link)
	}
	for old, now := range map[string]string{
		"outbound stop --calls": "admin outbound stop --calls", "outbound status": "admin outbound status", "outbound start": "admin outbound start",
		"hearing status": "speech-model status", "hearing packages": "speech-model packages", "hearing install --from /nowhere": "speech-model install --from /nowhere",
		"stock add --from +12025550170 --trunk trk_none --org " + org:          "numbers add-block --from +12025550170 --trunk trk_none --org " + org,
		"port set --id por_none --status scheduled --detail soon --org " + org: "numbers port-status --id por_none --status scheduled --detail soon --org " + org,
	} {
		env := []string{"SONIQ_DATA=" + s.Data, "SONIQ_DB=" + s.DB}
		a, b := soniq(t, env, strings.Fields(old)...), soniq(t, env, strings.Fields(now)...)
		b.wrong = strings.ReplaceAll(b.wrong, "speech-model install", "hearing install")
		if a != b || a.out+a.wrong == "" {
			t.Errorf("%s: %+v\n%s: %+v", old, a, now, b)
		}
	}
}
