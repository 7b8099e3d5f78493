package sms

import (
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

func TestSIPMessage_BetweenPhones(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	office := fixture.NewOrg(s)
	ada, bob := office.AddUser("Ada"), office.AddUser("Bob")
	desk := office.AddCarrier(ada.ID, nil)
	var page struct{ Data []struct{ ID string } }
	office.Want(200, "GET", "/numbers", nil, &page)
	office.Want(200, "PATCH", "/numbers/"+page.Data[0].ID, map[string]any{"sms_enabled": true}, nil)
	one, two := s.Linphone(ada.SIP, rig.LinphoneOptions{}), s.Linphone(bob.SIP, rig.LinphoneOptions{})
	one.Do("chat sip:" + bob.Extension + "@" + s.SIP + " lunch at noon")
	two.Wait("(?i)message.*lunch at noon|lunch at noon")
	office.Webhook.Wait("sms.received", 30*time.Second, func(e rig.Event) bool {
		return e.Data["body"] == "lunch at noon" && e.Data["from_number"] == ada.Extension && e.Data["to_number"] == bob.Extension
	})
	var m struct{ ID, Status string }
	office.Want(201, "POST", "/sms", map[string]any{"from": desk.Number, "to": "ext:" + bob.Extension, "body": "the door is open"}, &m)
	two.Wait("the door is open")
	rig.Until(t, "delivery", 20*time.Second, func() bool {
		office.Want(200, "GET", "/sms/"+m.ID, nil, &m)
		return m.Status == "delivered"
	})
	office.Webhook.Wait("sms.sent", 20*time.Second, func(e rig.Event) bool { return e.Data["message_id"] == m.ID })
	var found struct {
		Results []struct {
			Kind      string
			MessageID string `json:"message_id"`
		}
	}
	office.Want(200, "POST", "/memory/search", map[string]any{"query": "an open door", "kinds": []string{"sms"}}, &found)
	if len(found.Results) == 0 || found.Results[0].MessageID != m.ID || found.Results[0].Kind != "sms" {
		t.Errorf("the search for the message found %+v, want %s", found.Results, m.ID)
	}
	if r := office.Do("POST", "/sms", map[string]any{"from": desk.Number, "to": "+14155550100", "body": "x"}); r.Status != 422 ||
		!strings.Contains(string(r.Body), "destination_not_allowed") {
		t.Errorf("to the outside: %d %s", r.Status, r.Body)
	}
}
