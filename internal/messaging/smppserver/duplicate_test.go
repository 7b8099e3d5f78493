package smppserver_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"soniq/internal/messaging/smppserver"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/protocol/smpp"
)

func TestDuplicate_LostResponseSentOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newFixture(t, d, nil)
		id, system, password := s.createApplication(nil)
		w := s.dial()
		w.bind(system, password)
		w.submit(own, "+12025550111", "once")
		if got := w.response(); got != "submit_sm_resp ESME_ROK" {
			t.Fatal(got)
		}
		w.submit(own, "+12025550111", "twice")
		w.response()
		w.submit(own, "+12025550111", "twice") // on the same connection these are two messages
		w.response()
		w.Close()
		s.waitUnbound(id)
		p := s.bind(system, password, nil)
		ids := p.send(newMessage(own, "+12025550111", "once"))
		for range 3 {
			p.send(newMessage(own, "+12025550111", "twice")) // two of them repeat the earlier ones
		}
		if all := s.sentTexts(); !sameTexts(all, "once", "twice", "twice", "twice") {
			t.Errorf("written: %q", all)
		}
		p.send(newMessage(own, "+12025550111", "once")) // its response was received in the meantime
		if all := s.sentTexts(); !sameTexts(all, "once", "once", "twice", "twice", "twice") {
			t.Errorf("written: %q", all)
		}
		for r := within(t, p.receipts, "receipt"); r.MessageID != ids[0]; r = within(t, p.receipts, "receipt under the new identifier") {
		}
	})
}

func sameTexts(all []string, want ...string) bool {
	slices.Sort(all)
	return slices.Equal(all, want)
}

func TestDuplicate_UnbindConfirmsResponses(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newFixture(t, d, nil)
		_, system, password := s.createApplication(nil)
		for range 2 {
			p := s.bind(system, password, nil)
			p.send(newMessage(own, "+12025550111", "hello"))
			p.end()
			s.waitResponsesMarked()
		}
		if all := s.sentTexts(); !sameTexts(all, "hello", "hello") {
			t.Errorf("written: %q", all)
		}
	})
}

func TestParts_SurviveRestart(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789", 40)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newFixture(t, d, nil)
		_, system, password := s.createApplication(nil)
		parts, err := smpp.TextSettings{}.Parts(long, 7)
		if err != nil || len(parts) != 3 {
			t.Fatal(parts, err)
		}
		for _, i := range []int{2, 0, 1} {
			w := s.dial()
			w.bind(system, password)
			w.write(smpp.PDU{Command: smpp.SubmitSM, Body: &smpp.Message{Source: smpp.ParseAddress(own),
				Destination: smpp.ParseAddress("+12025550111"), ESMClass: parts[i].ESMClass, ShortMessage: parts[i].ShortMessage}})
			if got := w.response(); got != "submit_sm_resp ESME_ROK" {
				t.Fatal(got)
			}
			w.Close() // the server waits seconds for the unbind_resp of a connected client
			s.stop()
			s.start(nil)
		}
		if all := s.sentTexts(); len(all) != 1 || all[0] != long {
			t.Errorf("written: %q", all)
		}
	})
}

func TestParts_OverTwoConnections(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newFixture(t, d, nil)
		_, system, password := s.createApplication(map[string]any{"rate_per_second": 1000})
		a, b := s.dial(), s.dial()
		a.bind(system, password)
		b.bind(system, password)
		var want []string
		for n := range 20 {
			body := strings.Repeat(string(rune('a'+n)), 200)
			want = append(want, body)
			parts, _ := smpp.TextSettings{}.Parts(body, 9) // always with the same reference
			for i, w := range []*rawClient{a, b} {
				w.write(smpp.PDU{Command: smpp.SubmitSM, Body: &smpp.Message{Source: smpp.ParseAddress(own),
					Destination: smpp.ParseAddress("+12025550111"), ESMClass: parts[i].ESMClass, ShortMessage: parts[i].ShortMessage}})
			}
			for _, w := range []*rawClient{a, b} {
				if got := w.response(); got != "submit_sm_resp ESME_ROK" {
					t.Fatal(got)
				}
			}
		}
		if all := s.sentTexts(); !sameTexts(all, want...) {
			t.Errorf("%d were written: %q", len(all), all)
		}
	})
}

func TestParts_IncompleteNotSent(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newFixture(t, d, func(c *smppserver.Config) { c.PartsAge = 200 * time.Millisecond })
		_, system, password := s.createApplication(nil)
		parts, _ := smpp.TextSettings{}.Parts(strings.Repeat("0123456789", 40), 7)
		p := s.bind(system, password, func(c *smpp.Config) { c.Mode = smpp.BindReceiver })
		w := s.dial()
		w.write(smpp.PDU{Command: smpp.BindTransmitter, Body: &smpp.Bind{SystemID: system, Password: smpp.Secret(password),
			InterfaceVersion: 0x34}})
		w.response()
		w.write(smpp.PDU{Command: smpp.SubmitSM, Body: &smpp.Message{Source: smpp.ParseAddress(own),
			Destination: smpp.ParseAddress("+12025550111"), ESMClass: parts[0].ESMClass, ShortMessage: parts[0].ShortMessage,
			RegisteredDelivery: 1}})
		w.response()
		if r := within(t, p.receipts, "receipt"); r.State != smpp.Undeliverable {
			t.Errorf("receipt says %s", r.State)
		}
		if all := s.sentTexts(); len(all) != 0 {
			t.Errorf("sent: %q", all)
		}
	})
}
