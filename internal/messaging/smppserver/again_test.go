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

func TestAMessageWhoseAnswerWasLostIsSentOnceWhenItComesAgain(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := build(t, d, nil)
		id, system, password := s.application(nil)
		w := s.wire()
		w.bind(system, password)
		w.submit(own, "+12025550111", "once")
		if got := w.answer(); got != "submit_sm_resp ESME_ROK" {
			t.Fatal(got)
		}
		w.submit(own, "+12025550111", "twice")
		w.answer()
		w.submit(own, "+12025550111", "twice") // on the same connection these are two messages
		w.answer()
		w.Close()
		s.unbound(id)
		p := s.program(system, password, nil)
		ids := p.send(text(own, "+12025550111", "once"))
		for range 3 {
			p.send(text(own, "+12025550111", "twice")) // two of them repeat the earlier ones
		}
		if all := s.sent(); !same(all, "once", "twice", "twice", "twice") {
			t.Errorf("written: %q", all)
		}
		p.send(text(own, "+12025550111", "once")) // its response was received in the meantime
		if all := s.sent(); !same(all, "once", "once", "twice", "twice", "twice") {
			t.Errorf("written: %q", all)
		}
		for r := within(t, p.receipts, "receipt"); r.MessageID != ids[0]; r = within(t, p.receipts, "receipt under the new identifier") {
		}
	})
}

func same(all []string, want ...string) bool {
	slices.Sort(all)
	return slices.Equal(all, want)
}

func TestWhoSaysGoodbyeHasHeardTheAnswers(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := build(t, d, nil)
		id, system, password := s.application(nil)
		for range 2 {
			p := s.program(system, password, nil)
			p.send(text(own, "+12025550111", "hello"))
			p.end()
			s.unbound(id)
			s.room.Close()
		}
		if all := s.sent(); !same(all, "hello", "hello") {
			t.Errorf("written: %q", all)
		}
	})
}

func TestPartsSurviveTheEndOfTheProcess(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789", 40)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := build(t, d, nil)
		_, system, password := s.application(nil)
		parts, err := smpp.Text{}.Parts(long, 7)
		if err != nil || len(parts) != 3 {
			t.Fatal(parts, err)
		}
		for _, i := range []int{2, 0, 1} {
			w := s.wire()
			w.bind(system, password)
			w.write(smpp.PDU{Command: smpp.SubmitSM, Body: &smpp.Message{Source: smpp.ParseAddress(own), Destination: smpp.ParseAddress("+12025550111"),
				ESMClass: parts[i].ESMClass, ShortMessage: parts[i].ShortMessage}})
			if got := w.answer(); got != "submit_sm_resp ESME_ROK" {
				t.Fatal(got)
			}
			s.stop()
			s.open(nil)
		}
		if all := s.sent(); len(all) != 1 || all[0] != long {
			t.Errorf("written: %q", all)
		}
	})
}

func TestPartsOfOneMessageOnTwoConnectionsAtOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := build(t, d, nil)
		_, system, password := s.application(map[string]any{"rate_per_second": 1000})
		a, b := s.wire(), s.wire()
		a.bind(system, password)
		b.bind(system, password)
		var want []string
		for n := range 20 {
			body := strings.Repeat(string(rune('a'+n)), 200)
			want = append(want, body)
			parts, _ := smpp.Text{}.Parts(body, 9) // always with the same reference
			for i, w := range []*wire{a, b} {
				w.write(smpp.PDU{Command: smpp.SubmitSM, Body: &smpp.Message{Source: smpp.ParseAddress(own), Destination: smpp.ParseAddress("+12025550111"),
					ESMClass: parts[i].ESMClass, ShortMessage: parts[i].ShortMessage}})
			}
			for _, w := range []*wire{a, b} {
				if got := w.answer(); got != "submit_sm_resp ESME_ROK" {
					t.Fatal(got)
				}
			}
		}
		if all := s.sent(); !same(all, want...) {
			t.Errorf("%d were written: %q", len(all), all)
		}
	})
}

func TestAMessageOfWhichPartsNeverCameIsNotSentAndItsReceiptSaysSo(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := build(t, d, func(c *smppserver.Config) { c.PartsAge = 200 * time.Millisecond })
		_, system, password := s.application(nil)
		parts, _ := smpp.Text{}.Parts(strings.Repeat("0123456789", 40), 7)
		p := s.program(system, password, func(c *smpp.Config) { c.Mode = smpp.BindReceiver })
		w := s.wire()
		w.write(smpp.PDU{Command: smpp.BindTransmitter, Body: &smpp.Bind{SystemID: system, Password: smpp.Secret(password), InterfaceVersion: 0x34}})
		w.answer()
		w.write(smpp.PDU{Command: smpp.SubmitSM, Body: &smpp.Message{Source: smpp.ParseAddress(own), Destination: smpp.ParseAddress("+12025550111"),
			ESMClass: parts[0].ESMClass, ShortMessage: parts[0].ShortMessage, RegisteredDelivery: 1}})
		w.answer()
		if r := within(t, p.receipts, "receipt"); r.State != smpp.Undeliverable {
			t.Errorf("receipt says %s", r.State)
		}
		if all := s.sent(); len(all) != 0 {
			t.Errorf("sent: %q", all)
		}
	})
}
