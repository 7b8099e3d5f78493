package command_test

import (
	"strings"
	"testing"

	"soniq/e2e/rig"
)

// TestOldNames_WorkAsBefore runs the operator's commands under the names of earlier versions beside a server. The answers are
// those of the present names.
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
	if got := s.Command("outbound", "stop", "--calls"); !strings.Contains(got, "call(s) were ended") {
		t.Errorf("outbound stop: %q", got)
	}
	if old, now := s.Command("outbound", "status"), s.Command("admin", "outbound", "status"); old != now || old == "" {
		t.Errorf("outbound status: %q and %q", old, now)
	}
	s.Command("outbound", "start")
	env := []string{"SONIQ_DATA=" + s.Data, "SONIQ_DB=" + s.DB}
	for old, now := range map[string]string{
		"stock add --from +12025550170 --trunk trk_none --org " + org:          "numbers add-block --from +12025550170 --trunk trk_none --org " + org,
		"port set --id por_none --status scheduled --detail soon --org " + org: "numbers port-status --id por_none --status scheduled --detail soon --org " + org,
	} {
		a, b := soniq(t, env, strings.Fields(old)...), soniq(t, env, strings.Fields(now)...)
		if a != b || a.code != 1 || a.wrong == "" {
			t.Errorf("%s: %+v\n%s: %+v", old, a, now, b)
		}
	}
	if status := soniq(t, nil, "hearing", "status"); status.code != 0 || !strings.Contains(status.out, "listens") {
		t.Errorf("hearing status: %+v", status)
	}
}
