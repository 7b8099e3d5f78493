package browser

import (
	"strings"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// A supervisor who wants to listen in a browser is called there and at no other device. If no browser is registered,
// the request fails with the reason.
func TestSupervision_InBrowser(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Load: rig.Browser, Flags: []string{"--web-origins", "*"}})
	office := s.Org("live")
	ada, bob, carol := office.AddUser("Ada"), office.AddUser("Bob"), office.AddUser("Carol")
	say := voice(t, "1000", "8000")
	caller := s.Phone(ada.SIP, rig.PhoneOptions{Say: say})
	s.Phone(bob.SIP, rig.PhoneOptions{Say: say, Auto: true})
	s.Phone(carol.SIP, rig.PhoneOptions{Say: say, Auto: true}) // at her desk phone
	caller.Dial(bob.Extension)
	var live struct{ Data []struct{ ID, Status string } }
	rig.Until(t, "the call", 10*time.Second, func() bool {
		office.Want(200, "GET", "/calls/live", nil, &live)
		return len(live.Data) == 1 && live.Data[0].Status == "in_progress"
	})
	path, body := "/calls/"+live.Data[0].ID, map[string]any{"user_id": carol.ID, "deliver": "webrtc"}
	var problem struct {
		Code   string
		Errors []struct{ Field, Code, Message string }
	}
	office.Want(422, "POST", path+"/monitor", body, &problem)
	if len(problem.Errors) != 1 || problem.Errors[0].Code != "not_reachable" || !strings.Contains(problem.Errors[0].Message, "browser") {
		t.Errorf("without a browser: %+v", problem)
	}
	var page struct {
		ID  string
		SIP rig.Login
	}
	office.Want(201, "POST", "/devices", map[string]any{"user_id": carol.ID, "name": "page", "kind": "webrtc"}, &page)
	tab := newWebPhone(t, s, page.SIP, "440", true)
	office.Want(201, "POST", path+"/monitor", body, nil)
	tab.wait("confirmed")
	tab.hears(1000)
	var c struct {
		Legs []struct {
			Role   string
			Device string `json:"device_id"`
		}
	}
	office.Want(200, "GET", path+"?expand=legs", nil, &c)
	rung := 0
	for _, l := range c.Legs {
		if l.Role == "monitor" {
			rung++
			if l.Device != page.ID {
				t.Errorf("telephone %s was rung, want only the page %s", l.Device, page.ID)
			}
		}
	}
	if rung != 1 {
		t.Errorf("%d telephones of the supervisor were rung", rung)
	}
}
