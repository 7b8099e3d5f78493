package command_test

import (
	"os/user"
	"path/filepath"
	"testing"

	"soniq/e2e/rig"
)

// Commands on the host are in the audit log of the organisations that they concern, with the user of the operating system. They are there
// beside a running server and without one. Questions are not.
//
// A sibling of chatto#217.
func TestAudit_CommandsOfTheHost(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, quick)
	o, other := s.Org("live"), s.Org("live")
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	s.Command("admin", "users", "add", "eve@example.org", "--org", o.Org)
	s.Command("admin", "users", "password", "eve@example.org", "--org", o.Org)
	s.Command("admin", "outbound", "stop")
	s.Command("admin", "outbound", "status")
	s.Command("admin", "outbound", "start")
	s.Stop()
	s.Command("backup", "--to", filepath.Join(t.TempDir(), "copy"))
	s.Command("admin", "keys", "create", "--org", o.Org, "--scopes", "calls:read", "--name", "later")
	s.Start()
	whole := map[string]int{"command.org.create": 1, "command.key.create": 1, "command.outbound.stop": 1, "command.outbound.start": 1,
		"command.backup": 1}
	mine := map[string]int{"command.user.add": 1, "command.user.link": 1, "command.key.create": 2}
	for k, n := range whole {
		if mine[k] == 0 {
			mine[k] = n
		}
	}
	for _, c := range []struct {
		client *rig.Client
		want   map[string]int
	}{{o, mine}, {other, whole}} {
		var page struct {
			Data []struct {
				Operation, Outcome string
				Actor              struct {
					Credential string
					KeyName    string `json:"key_name"`
				}
			}
		}
		c.client.Want(200, "GET", "/audit-log?limit=200", nil, &page)
		got := map[string]int{}
		for _, l := range page.Data {
			if l.Actor.Credential == "command line" {
				got[l.Operation]++
				if l.Outcome != "done" || l.Actor.KeyName != me.Username {
					t.Errorf("line %+v, want it done by %s", l, me.Username)
				}
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("lines %v, want %v", got, c.want)
		}
		for k, n := range c.want {
			if got[k] != n {
				t.Errorf("%d lines of %s, want %d", got[k], k, n)
			}
		}
	}
}
