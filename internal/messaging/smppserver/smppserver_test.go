package smppserver_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"soniq/internal/messaging/smppserver"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/protocol/smpp"
)

func TestSubmit_SentWithReceipt(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newFixture(t, d, nil)
		_, system, password := s.createApplication(nil)
		p := s.bind(system, password, nil)
		ids := p.send(newMessage(own, "+12025550111", "Your appointment is at nine."))
		m := s.request("GET", "/sms/"+ids[0], nil).Want(200)
		if m.Text("body") != "Your appointment is at nine." || m.Text("from_number") != own || m.Text("source") != "api" {
			t.Errorf("written as %s", m.Bytes)
		}
		r := within(t, p.receipts, "receipt")
		if r.MessageID != ids[0] || r.State != smpp.Delivered || r.From.String() != "+12025550111" || r.To.String() != own {
			t.Errorf("receipt is %+v", r)
		}
		ids = p.send(newMessage(own, "+12025550112", "Lost."))
		if r := within(t, p.receipts, "receipt"); r.MessageID != ids[0] || r.State != smpp.Undeliverable {
			t.Errorf("receipt of what is not delivered is %+v", r)
		}
	})
}

func TestSubmit_ConcatenatedModes(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("Grüße an 12 Möwen. ", 20) + "🚀"
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newFixture(t, d, nil)
		_, system, password := s.createApplication(nil)
		for _, way := range []smpp.LongMode{smpp.UDH8, smpp.UDH16, smpp.SAR, smpp.Payload} {
			p := s.bind(system, password, func(c *smpp.Config) { c.Text.Long = way })
			ids := p.send(newMessage(own, "+12025550115", long))
			m := s.request("GET", "/sms/"+ids[0], nil).Want(200)
			if m.Text("body") != long || m.Text("encoding") != "ucs2" {
				t.Errorf("way %d: written as %s", way, m.Bytes)
			}
			seen := map[string]bool{}
			for range ids {
				seen[within(t, p.receipts, "receipt").MessageID] = true
			}
			for _, id := range ids {
				if !seen[id] {
					t.Errorf("way %d: no receipt of part %s", way, id)
				}
			}
			if in := within(t, p.got, "answer"); in.Text != long || in.From.String() != "+12025550115" || in.To.String() != own {
				t.Errorf("way %d: the answer is %+v", way, in)
			}
			p.end()
			s.waitResponsesMarked()
		}
	})
}

func TestSubmit_RefusedWithStatus(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newFixture(t, d, nil)
		s.request("POST", "/sms/opt-outs", map[string]any{"phone": "+12025550177"}).Want(201)
		_, system, password := s.createApplication(map[string]any{"numbers": []string{own}})
		p := s.bind(system, password, nil)
		for _, c := range []struct {
			from, to, body string
			status         smpp.Status
		}{
			{"+12025550999", "+12025550111", "x", smpp.BadSource}, {silent, "+12025550111", "x", smpp.BadSource}, {second, "+12025550111", "x", smpp.BadSource},
			{"Harbor", "+12025550111", "x", smpp.BadSource}, {own, "+4930123456", "x", smpp.BadDestination}, {own, "+12025550177", "x", smpp.SubmitFailed},
			{own, "+12025550111", "", smpp.BadMessageLength}, {own, "+12025550111", strings.Repeat("x", 1601), smpp.BadMessageLength},
		} {
			_, err := p.Submit(t.Context(), newMessage(c.from, c.to, c.body))
			var e *smpp.Error
			if !errors.As(err, &e) || e.Status != c.status {
				t.Errorf("%s to %s, %d characters: %v, not %v", c.from, c.to, len(c.body), err, c.status)
			}
		}
		if n := len(s.request("GET", "/sms", nil).Want(200).At("data").([]any)); n != 0 {
			t.Errorf("%d messages were written", n)
		}
	})
}

func TestDeliver_WaitsForBindInOrder(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newFixture(t, d, nil)
		_, system, password := s.createApplication(nil)
		_, otherSystem, otherPassword := s.createApplication(map[string]any{"numbers": []string{second}})
		words := strings.Fields("one two three four five six seven eight nine ten")
		for _, w := range words {
			s.receive("+12025550150", own, w)
		}
		p, other := s.bind(system, password, nil), s.bind(otherSystem, otherPassword, nil)
		for _, w := range words {
			if in := within(t, p.got, "message"); in.Text != w {
				t.Fatalf("%q came, not %q", in.Text, w)
			}
		}
		s.receive("+12025550150", second, "for both")
		for _, p := range []*testClient{p, other} {
			if in := within(t, p.got, "message"); in.Text != "for both" {
				t.Errorf("%q came", in.Text)
			}
		}
	})
}

func TestDeliver_RetriedUntilAcknowledged(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newFixture(t, d, nil)
		_, system, password := s.createApplication(nil)
		tries := make(chan string, 10)
		refuse := make(chan error, 2)
		refuse <- smpp.TemporaryAppError
		refuse <- smpp.QueueFull
		close(refuse)
		s.bind(system, password, func(c *smpp.Config) {
			c.Handler = refuseFirst{c.Handler, tries, refuse}
		})
		s.receive("+12025550150", own, "again")
		for range 3 {
			if got := within(t, tries, "try"); got != "again" {
				t.Errorf("%q came", got)
			}
		}
		s.receive("+12025550150", own, "next")
		if got := within(t, tries, "next message"); got != "next" {
			t.Errorf("%q came after the acknowledgement", got)
		}
	})
}

func TestBind_WrongPasswordRefusedAndBanned(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newFixture(t, d, func(c *smppserver.Config) { c.Bans = smppserver.BanConfig{MaxFailures: 3, FirstBan: time.Second} })
		id, system, password := s.createApplication(nil)
		bound := s.bind(system, password, nil)
		var said []string
		for _, login := range [][2]string{{system, "wrong"}, {"nobody", password}} {
			said = append(said, s.bindRefusal(login[0], login[1]))
		}
		if said[0] != "bind_transceiver_resp ESME_RBINDFAIL" || said[0] != said[1] {
			t.Errorf("a wrong password and an unknown name are told apart: %q", said)
		}
		s.bindRefusal(system, "wrong")
		if got := s.bindRefusal(system, password); got != "EOF" {
			t.Errorf("after three wrong passwords the right one gets %s", got)
		}
		bound.send(newMessage(own, "+12025550111", "who is in stays in"))
		late := s.bind(system, password, nil) // the ban ends
		late.send(newMessage(own, "+12025550111", "back"))
		if n := s.request("GET", "/sms/applications/"+id, nil).Want(200).At("bound"); n != float64(2) {
			t.Errorf("%v are bound", n)
		}
	})
}

func TestApplication_LimitsEnforced(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newFixture(t, d, nil)
		id, system, password := s.createApplication(map[string]any{"max_binds": 2, "rate_per_second": 2})
		one, two := s.bind(system, password, nil), s.bind(system, password, nil)
		if got := s.bindRefusal(system, password); got != "bind_transceiver_resp ESME_RALYBND" {
			t.Errorf("a third bind gets %s", got)
		}
		throttled := 0
		for i := range 20 {
			_, err := []*testClient{one, two}[i%2].Submit(t.Context(), newMessage(own, "+12025550111", "quick"))
			if errors.Is(err, smpp.Throttled) {
				throttled++
			}
		}
		if throttled < 2 {
			t.Errorf("%d of 20 messages at once were throttled", throttled)
		}
		s.request("PATCH", "/sms/applications/"+id, map[string]any{"enabled": false}).Want(200)
		s.waitUnbound(id)
		if got := s.bindRefusal(system, password); got != "bind_transceiver_resp ESME_RBINDFAIL" {
			t.Errorf("who is disabled gets %s", got)
		}
	})
}

func TestRotatePassword_OldRefused(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newFixture(t, d, nil)
		id, system, password := s.createApplication(nil)
		s.bind(system, password, nil).end()
		fresh := s.request("POST", "/sms/applications/"+id+"/rotate-password", nil).Want(200).Text("password")
		if got := s.bindRefusal(system, password); got != "bind_transceiver_resp ESME_RBINDFAIL" {
			t.Errorf("the old password gets %s", got)
		}
		s.bind(system, fresh, nil)
		if a := s.request("GET", "/sms/applications/"+id, nil).Want(200); a.Has("", "password") || strings.Contains(string(a.Bytes), fresh) {
			t.Errorf("the password is shown again: %s", a.Bytes)
		}
		s.request("DELETE", "/sms/applications/"+id, nil).Want(204)
		s.request("GET", "/sms/applications/"+id, nil).Refused("not_found")
		if got := s.bindRefusal(system, fresh); got != "bind_transceiver_resp ESME_RBINDFAIL" {
			t.Errorf("who was deleted gets %s", got)
		}
	})
}

func TestCreateApplication_AllViolationsListed(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newFixture(t, d, nil)
		id, _, _ := s.createApplication(nil)
		s.request("POST", "/sms/applications", map[string]any{"name": " ", "numbers": []string{own, "+12025550999"}}).Refused("validation_failed", "name invalid_length", "numbers[1] number_not_owned")
		s.request("PATCH", "/sms/applications/"+id, map[string]any{"max_binds": 0, "rate_per_second": 5000, "default_alphabet": "ebcdic"}).
			Refused("validation_failed", "max_binds out_of_range", "rate_per_second out_of_range", "default_alphabet invalid_value")
	})
}
