package e2e

import (
	"testing"
	"time"

	"soniq/e2e/rig"
)

// doing is what an agent does.
type doing struct {
	Presence struct{ Status string }
	Call     string `json:"active_call_id"`
	Devices  int    `json:"devices_registered"`
}

func (p doing) String() string { return p.Presence.Status }

func agent(c *rig.Client, id string) (p doing) {
	c.T.Helper()
	c.Want(200, "GET", "/agents/"+id, nil, &p)
	return p
}

// TestAgentsAreSeenOnTheirPhonesAndCalls has two telephones sign in and speak, and follows what the API says.
func TestAgentsAreSeenOnTheirPhonesAndCalls(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{}, func(t *testing.T, s *rig.Server) {
		c := s.Org("live")
		ada, bob := c.AddUser("Ada"), c.AddUser("Bob")
		var queue struct{ ID string }
		c.Want(201, "POST", "/queues", map[string]any{"name": "Support"}, &queue)
		c.Want(201, "POST", "/queues/"+queue.ID+"/members", map[string]any{"user_id": bob.ID}, nil)
		if p := agent(c, bob.ID); p.String() != "offline" {
			t.Errorf("without a phone bob is %s", p)
		}
		low, _ := tone(t, 440)
		one, two := s.Phone(ada.SIP, rig.PhoneOptions{Say: low}), s.Phone(bob.SIP, rig.PhoneOptions{Say: low})
		if p := agent(c, bob.ID); p.String() != "available" || p.Devices != 1 {
			t.Errorf("with a phone bob is %s", p)
		}
		free := func(want int) bool {
			var stats struct {
				Available int `json:"agents_available"`
			}
			c.Want(200, "GET", "/queues/"+queue.ID+"/stats", nil, &stats)
			return stats.Available == want
		}
		if !free(1) {
			t.Error("the queue has nobody free")
		}
		one.Do("dial", bob.Extension)
		two.Wait("CALL_INCOMING", "")
		rig.Until(t, "bob rings", 20*time.Second, func() bool { return agent(c, bob.ID).String() == "ringing" && agent(c, ada.ID).String() == "busy" })
		two.Do("accept", "")
		rig.Until(t, "both are busy", 20*time.Second, func() bool {
			a, b := agent(c, ada.ID), agent(c, bob.ID)
			return a.String() == "busy" && b.String() == "busy" && a.Call != "" && a.Call == b.Call && free(0)
		})
		one.Do("hangup", "")
		rig.Until(t, "both are free", 20*time.Second, func() bool {
			return agent(c, ada.ID).String() == "available" && agent(c, bob.ID).String() == "available" && free(1)
		})
	})
}

func TestAPhoneIsAskedToFetchItsConfigurationAgain(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{})
	c := s.Org("live")
	ada := c.AddUser("Ada")
	var page struct{ Data []struct{ ID string } }
	c.Want(200, "GET", "/devices?user_id="+ada.ID, nil, &page)
	path := "/devices/" + page.Data[0].ID + "/resync"
	c.Want(409, "POST", path, map[string]any{}, nil)
	port := rig.FreePort(t)
	s.Sipp(rig.Script{Scenario: "register", Login: &ada.SIP, Port: port}).Wait()
	phone := s.Sipp(rig.Script{Scenario: "answer_notify", Port: port})
	c.Want(202, "POST", path, map[string]any{"reboot": true}, nil)
	phone.Wait()
	if got := rig.Field(phone.Received("NOTIFY", 0), "Event"); got != "check-sync;reboot=true" {
		t.Errorf("the phone was told %q", got)
	}
}
