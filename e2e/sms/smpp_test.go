package sms

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// mobile is a number outside.
const mobile = "+12025550170"

func TestSMPP_SendWithReceipt(t *testing.T) {
	t.Parallel()
	rig.Either(t, rig.Options{Alone: true, Env: fixture.NoSpeech}, func(t *testing.T, s *rig.Server) {
		c := newSMSC(t)
		x := connectSMSC(fixture.NewOrg(s), c, nil, nil)
		x.waitCarrier("active")
		c.wait("bound", 1)

		m := x.send(mobile, "Hello {you} for 5 €")
		x.waitStatus(m.ID, "delivered")
		if got := c.all("submit", mobile); len(got) != 1 || got[0].Text != "Hello {you} for 5 €" || got[0].From != "12025550143" || got[0].Wants != 1 {
			t.Errorf("the centre got %+v", got)
		}
		x.Webhook.Wait("sms.sent", 30*time.Second, func(e rig.Event) bool { return e.Data["message_id"] == m.ID })

		long := strings.Repeat("0123456789", 39) + "😀 the end"
		m = x.send("+12025550171", long)
		x.waitStatus(m.ID, "delivered")
		got := c.all("submit", "+12025550171")
		joined := ""
		for i, p := range got {
			if joined += p.Text; p.Total != len(got) || p.Part != i+1 || p.Reference != got[0].Reference || p.Coding != 8 {
				t.Errorf("part %d: %+v", i+1, p)
			}
		}
		if joined != long || len(got) != m.Segments || m.Encoding != "ucs2" {
			t.Errorf("%d parts of %d: %q", len(got), m.Segments, joined)
		}

		m = x.waitStatus(x.send("+12025550112", "not delivered").ID, "undelivered")
		if m.Error == nil || m.Error.Code != "unreachable" || m.Error.CarrierCode == nil || *m.Error.CarrierCode != "027" {
			t.Errorf("error of what was not delivered: %+v", m.Error)
		}
		m = x.waitStatus(x.send("+12025550113", "refused").ID, "failed")
		if m.Error == nil || m.Error.Code != "invalid_destination" || *m.Error.CarrierCode != "ESME_RINVDSTADR" {
			t.Errorf("error of what was refused: %+v", m.Error)
		}
		x.waitStatus(x.send("+12025550114", "the receipt comes first").ID, "delivered")
		x.waitStatus(x.send("+12025550115", "slow").ID, "delivered")
		x.waitStatus(x.send("+12025550116", "two receipts").ID, "delivered")
		c.order(map[string]any{"do": "receipt", "id": "4711", "stat": "DELIVRD"})
		c.wait("receipt_taken", 7+len(got))
		for _, r := range c.all("receipt_taken", "") {
			if r.Status != 0 {
				t.Errorf("receipt %s was answered with %d", r.ID, r.Status)
			}
		}
	})
}

func TestSMPP_Receive(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{Env: fixture.NoSpeech}, func(t *testing.T, s *rig.Server) {
		c := newSMSC(t)
		x := connectSMSC(fixture.NewOrg(s), c, nil, nil)
		x.waitCarrier("active")
		c.wait("bound", 1)
		long := strings.Repeat("Grüße aus Köln, ünd 日本. ", 10)
		c.order(map[string]any{"do": "mo", "from": mobile, "to": x.from, "text": long})
		e := x.Webhook.Wait("sms.received", 30*time.Second, func(rig.Event) bool { return true })
		if e.Data["body"] != long || e.Data["from_number"] != mobile || e.Data["to_number"] != x.from {
			t.Errorf("received %v", e.Data)
		}
		c.order(map[string]any{"do": "mo", "from": mobile, "to": "+12025550999", "text": "not ours"})
		c.order(map[string]any{"do": "mo", "from": mobile, "to": x.from, "text": "Arrêt "})
		rig.Until(t, "an answer to a keyword", 30*time.Second, func() bool { return len(c.all("submit", mobile)) == 1 })
		if answer := c.all("submit", mobile)[0].Text; !strings.Contains(answer, "REPRENDRE") {
			t.Errorf("answered %q", answer)
		}
		x.Want(422, "POST", "/sms", map[string]any{"from": x.from, "to": mobile, "body": "more"}, nil)
		var all struct{ Data []smsMessage }
		x.Want(200, "GET", "/sms?direction=inbound", nil, &all)
		if len(all.Data) != 2 {
			t.Errorf("%d messages came in, not 2", len(all.Data))
		}
	})
}

func TestSMPP_ThrottlingAndReconnect(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Alone: true, Env: fixture.NoSpeech})
	c := newSMSC(t)
	x := connectSMSC(fixture.NewOrg(s), c, map[string]any{"submit_ids": "hex", "receipt_ids": "decimal"}, nil)
	x.waitCarrier("active")
	c.wait("bound", 1)
	c.order(map[string]any{"do": "manner", "is": "hex"})
	c.order(map[string]any{"do": "limit", "n": 5})
	var ids []string
	for i := range 20 {
		ids = append(ids, x.send(fmt.Sprintf("+120255501%02d", 20+i), "throttled").ID)
	}
	for _, id := range ids {
		x.waitStatus(id, "delivered")
	}
	if n := len(c.all("throttled", "")); n == 0 || n > 40 {
		t.Errorf("throttled %d times", n)
	}
	if n := len(c.all("submit", "")); n != 20 {
		t.Errorf("%d messages arrived, not 20", n)
	}
	c.order(map[string]any{"do": "limit", "n": 0})
	c.stop()
	x.waitCarrier("degraded")
	m := x.send(mobile, "while the centre is dead")
	var trial struct {
		OK    bool
		Error *string
	}
	x.Want(200, "POST", "/sms/carriers/"+x.carrier+"/test", nil, &trial)
	if trial.OK || trial.Error == nil {
		t.Errorf("the test of a dead centre: %+v", trial)
	}
	c.start()
	c.order(map[string]any{"do": "manner", "is": "hex"})
	x.waitStatus(m.ID, "delivered")
	x.Want(200, "POST", "/sms/carriers/"+x.carrier+"/test", nil, &trial)
	if !trial.OK {
		t.Errorf("the test of a living centre: %+v", trial)
	}
	x.Want(200, "PATCH", "/sms/carriers/"+x.carrier, map[string]any{"settings": map[string]any{"password": "wrong"}}, nil)
	x.waitCarrier("auth_required")
	x.Want(200, "PATCH", "/sms/carriers/"+x.carrier, map[string]any{"settings": map[string]any{"password": "right"}}, nil)
	x.waitCarrier("active")
}

// waitStatus waits until a message is in a state.
func (x *smsOrg) waitStatus(id, status string) (m smsMessage) {
	x.T.Helper()
	rig.Until(x.T, "a message that is "+status, 60*time.Second, func() bool {
		x.Want(200, "GET", "/sms/"+id, nil, &m)
		return m.Status == status
	})
	return m
}
