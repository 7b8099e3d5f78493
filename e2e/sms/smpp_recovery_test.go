package sms

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// An acknowledged part of an inbound message survives a kill and is joined with the parts that arrive later.
func TestSMPP_PartsSurviveKill(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{Env: fixture.NoSpeech, Upset: true}, func(t *testing.T, s *rig.Server) {
		c := newSMSC(t)
		x := connectSMSC(fixture.NewOrg(s), c, nil, nil)
		x.waitCarrier("active")
		c.wait("bound", 1)
		long := strings.Repeat("abcdefghij", 35)
		c.order(map[string]any{"do": "mo", "from": mobile, "to": x.from, "text": long, "reference": 7, "only": []int{1, 3}})
		c.wait("mo_taken", 2)
		s.Kill()
		c.wait("left", 1)
		s.Start()
		c.wait("bound", 2)
		c.order(map[string]any{"do": "mo", "from": mobile, "to": x.from, "text": long, "reference": 7, "only": []int{2}})
		e := x.Webhook.Wait("sms.received", 30*time.Second, func(rig.Event) bool { return true })
		if e.Data["body"] != long {
			t.Errorf("received %v", e.Data["body"])
		}
	})
}

// A message submitted before a kill is not submitted again after it. Each message arrives once, or gets the status
// unknown.
func TestSMPP_NoDuplicateAfterKill(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{Env: fixture.NoSpeech, Upset: true}, func(t *testing.T, s *rig.Server) {
		c := newSMSC(t)
		x := connectSMSC(fixture.NewOrg(s), c, nil, map[string]any{"rate_per_second": 100, "number_rate_per_second": 100})
		x.waitCarrier("active")
		c.order(map[string]any{"do": "manner", "is": "slow"}) // so that some messages are in transit when the server is killed
		ids := map[string]string{}
		for i := range 200 {
			to := fmt.Sprintf("+1202555%02d%02d", 30+i/50, 20+i%50) // no number that the centre treats specially
			ids[to] = x.send(to, "once").ID
			if i == 120 {
				rig.Until(t, "some messages at the centre", 30*time.Second, func() bool { return len(c.all("submit", "")) > 40 })
				s.Kill()
				s.Start()
			}
		}
		unknown := 0
		for to, id := range ids {
			var m smsMessage
			rig.Until(t, "the end of a message", 90*time.Second, func() bool {
				x.Want(200, "GET", "/sms/"+id, nil, &m)
				return m.Status == "delivered" || m.Status == "sent" || m.Status == "failed"
			})
			n := len(c.all("submit", to))
			switch {
			case m.Status == "failed" && m.Error.Code == "unknown" && n <= 1:
				unknown++
			case m.Status == "failed" || n != 1:
				t.Errorf("%s is %s (%+v) and arrived %d times", to, m.Status, m.Error, n)
			}
		}
		if unknown == 0 || unknown > 60 {
			t.Errorf("of %d messages it is not known whether they were sent", unknown)
		}
		t.Logf("of %d messages it is not known whether they were sent", unknown)
	})
}
