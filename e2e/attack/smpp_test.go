package attack

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"soniq/e2e/rig"
	"soniq/internal/protocol/smpp"
)

// TestSMPP_ForeignCredentialsAndNumbers covers a program that tries what belongs to another organisation.
func TestSMPP_ForeignCredentialsAndNumbers(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, smppFlags(t))
	mallory, victim := newSMPPOrg(t, s, 100), newSMPPOrg(t, s, 100)
	const mobile = "+12025550170"
	for name, b := range map[string]*smpp.Bind{"no password": bindAs(victim.system, ""), "another's password": bindAs(victim.system, mallory.password),
		"no name": bindAs("", ""), "a name with a quote": bindAs("' OR ''='", "x"), "a long password": bindAs(victim.system, strings.Repeat("x", 60))} {
		p := dialSMPP(t, s, "127.0.0.1")
		if got := p.answer(smpp.BindTransceiver, b); got != "bind_transceiver_resp ESME_RBINDFAIL" {
			t.Errorf("a bind with %s: %s", name, got)
		}
		if got := p.answer(smpp.SubmitSM, submission(victim.number, mobile, "x")); got != "EOF" && got != "submit_sm_resp ESME_RINVBNDSTS" { // the connection closes
			t.Errorf("after a bind with %s: %s", name, got)
		}
	}
	p := dialSMPP(t, s, "127.0.0.1")
	if got := p.answer(smpp.SubmitSM, submission(victim.number, mobile, "x")); got != "submit_sm_resp ESME_RINVBNDSTS" {
		t.Errorf("a message without a bind: %s", got)
	}
	if got := p.answer(smpp.BindTransceiver, bindAs(mallory.system, mallory.password)); got != "bind_transceiver_resp ESME_ROK" {
		t.Fatal(got)
	}
	for _, number := range []string{victim.number, victim.number[1:], "", "soniq"} {
		if got := p.answer(smpp.SubmitSM, submission(number, mobile, "x")); got != "submit_sm_resp ESME_RINVSRCADR" {
			t.Errorf("a message that shows %q: %s", number, got)
		}
	}
	other := dialSMPP(t, s, "127.0.0.1")
	if got := other.answer(smpp.BindTransceiver, bindAs(victim.system, victim.password)); got != "bind_transceiver_resp ESME_ROK" {
		t.Fatal(got)
	}
	if got := p.answer(smpp.BindTransceiver, bindAs(victim.system, victim.password)); got != "bind_transceiver_resp ESME_RALYBND" {
		t.Errorf("a second bind: %s", got)
	}
	quiet := victim.listen(t)
	carrier := victim.connect(quiet.Addr())
	victim.waitCarrier(carrier)
	other.send(smpp.SubmitSM, submission(victim.number, mobile, "hello"))
	pdu, _ := other.receive()
	sent, _ := pdu.Body.(*smpp.MessageResponse)
	if sent == nil || pdu.Status != smpp.OK || sent.MessageID == "" {
		t.Fatalf("the victim's message: %+v", pdu)
	}
	query := &smpp.Query{MessageID: sent.MessageID, Source: smpp.ParseAddress(victim.number)}
	if got := p.answer(smpp.QuerySM, query); got != "query_sm_resp ESME_RQUERYFAIL" && got != "query_sm_resp ESME_RINVMSGID" {
		t.Errorf("a query of another's message: %s", got)
	}
	if got := other.answer(smpp.QuerySM, query); got != "query_sm_resp ESME_ROK" {
		t.Errorf("a query of the own message: %s", got)
	}
	var all struct{ Data []any }
	if mallory.Want(200, "GET", "/sms", nil, &all); len(all.Data) != 0 {
		t.Errorf("mallory has messages: %v", all.Data)
	}
}

// TestSMPP_MalformedAndFlood covers a program that sends what no program should, and too much.
func TestSMPP_MalformedAndFlood(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, smppFlags(t))
	o := newSMPPOrg(t, s, 50)
	const mobile = "+12025550170"
	bound := func() *smppPeer {
		p := dialSMPP(t, s, "127.0.0.1")
		if got := p.answer(smpp.BindTransceiver, bindAs(o.system, o.password)); got != "bind_transceiver_resp ESME_ROK" {
			t.Fatal(got)
		}
		return p
	}
	grown := growth(t, s, func() {
		length := func(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
		for name, b := range map[string][]byte{"length 0": append(length(0), make([]byte, 12)...), "length 15": append(length(15), make([]byte, 11)...),
			"4 GB": append(length(0xffffffff), make([]byte, 12)...), "64 KB and one": append(length(64<<10+1), make([]byte, 12)...),
			"HTTP": []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "SIP": []byte("OPTIONS sip:x SIP/2.0\r\n\r\n")} {
			p := dialSMPP(t, s, "127.0.0.1")
			_, _ = p.Write(b)
			if pdu, ok := p.receive(); ok && (pdu.Command != smpp.GenericNack || pdu.Status != smpp.BadCommandLength) {
				t.Errorf("%s: %v %v", name, pdu.Command, pdu.Status)
			}
			if !p.isEnded() {
				t.Errorf("%s: the connection goes on", name)
			}
		}
	})
	if grown > 50<<20 {
		t.Errorf("broken lengths took %d MB", grown>>20)
	}
	p := bound()
	huge := submission(o.number, mobile, "")
	huge.TLVs = smpp.TLVs{{Tag: smpp.TagMessagePayload, Value: bytes.Repeat([]byte("x"), 60_000)}}
	if got := p.answer(smpp.SubmitSM, huge); got != "submit_sm_resp ESME_RINVMSGLEN" {
		t.Errorf("a message of 60,000 characters: %s", got)
	}
	many := submission(o.number, mobile, "x")
	for range 15_000 {
		many.TLVs = append(many.TLVs, smpp.TLV{Tag: 0x1400})
	}
	began := time.Now()
	p.answer(smpp.SubmitSM, many)
	if d := time.Since(began); d > 2*time.Second {
		t.Errorf("a message with 15,000 parameters took %v", d)
	}
	for name, text := range map[string]string{"longer than the message": "\xffx", "with an element past its end": "\x04\x00\x09\x01\x02xx"} {
		m := submission(o.number, mobile, text)
		m.ESMClass = 0x40
		if got := p.answer(smpp.SubmitSM, m); got != "submit_sm_resp ESME_RINVESMCLASS" {
			t.Errorf("a header %s: %s", name, got)
		}
	}
	if got := p.answer(smpp.Command(0x7777), nil); got != "generic_nack ESME_RINVCMDID" {
		t.Errorf("an unknown command: %s", got)
	}
	o.flood(t, s, p, mobile)
	silentPeers(t, s, o)
}

// flood sends first parts of messages that never end, faster than allowed. The connection goes on.
func (o *smppOrg) flood(t *testing.T, s *rig.Server, p *smppPeer, to string) {
	t.Helper()
	const parts = 2000
	statuses := map[smpp.Status]int{}
	done := make(chan struct{})
	grown := growth(t, s, func() {
		go func() {
			defer close(done)
			for range parts {
				pdu, ok := p.receive()
				if !ok {
					return
				}
				statuses[pdu.Status]++
			}
		}()
		for i := range parts {
			m := submission(o.number, to, "")
			m.ShortMessage = append([]byte{6, 8, 4, byte(i >> 8), byte(i), 255, 1}, bytes.Repeat([]byte("x"), 100)...)
			m.ESMClass = 0x40
			p.send(smpp.SubmitSM, m)
		}
		<-done
	})
	if statuses[smpp.Throttled] < parts/2 || statuses[smpp.OK] == 0 || statuses[smpp.OK]+statuses[smpp.Throttled] != parts {
		t.Errorf("a flood is answered %v", statuses)
	}
	if grown > 50<<20 {
		t.Errorf("a flood took %d MB", grown>>20)
	}
	if got := p.answer(smpp.EnquireLink, nil); got != "enquire_link_resp ESME_ROK" {
		t.Errorf("after the flood: %s", got)
	}
}

// silentPeers holds many connections from one address without a bind. Another address may bind.
func silentPeers(t *testing.T, s *rig.Server, o *smppOrg) {
	t.Helper()
	for range 120 {
		dialSMPP(t, s, "127.0.0.3")
	}
	if got := dialSMPP(t, s, "127.0.0.4").answer(smpp.BindTransceiver, bindAs(o.system, o.password)); got != "bind_transceiver_resp ESME_ROK" {
		t.Errorf("beside 120 silent connections: %s", got)
	}
}

// receipt returns the delivery receipt of a message.
func receipt(from, to, id, state string) *smpp.Message {
	return &smpp.Message{Source: smpp.ParseAddress(from), Destination: smpp.ParseAddress(to), ESMClass: 4, ShortMessage: []byte("id:" + id +
		" sub:001 dlvrd:000 submit date:2611261000 done date:2611261000 stat:" + state + " err:001 text:")}
}

// listenForTwo returns a listener of an SMS centre that gives messages the ids 1, 2, 3 and so on. With the second it sends a receipt that
// the first was delivered.
func (o *smppOrg) listenForTwo(t *testing.T, mobile string) net.Listener {
	var id atomic.Int64
	return serveSMPP(t, func(_ int, p *smppPeer) {
		for {
			pdu, ok := p.receive()
			if !ok {
				return
			}
			if pdu.Command != smpp.SubmitSM {
				acceptRequest(p, pdu, "")
				continue
			}
			n := id.Add(1)
			acceptRequest(p, pdu, fmt.Sprint(n))
			if n == 2 {
				p.send(smpp.DeliverSM, receipt(mobile, o.number, "1", "DELIVRD"))
			}
		}
	})
}

// TestSMPP_CarrierOfAnotherOrganisation covers a carrier that sends messages and receipts for another organisation. The receipt of the
// organisation's own carrier counts afterwards.
func TestSMPP_CarrierOfAnotherOrganisation(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, smppFlags(t))
	mallory, victim := newSMPPOrg(t, s, 100), newSMPPOrg(t, s, 100)
	const mobile = "+12025550170"
	victim.waitCarrier(victim.connect(victim.listenForTwo(t, mobile).Addr()))
	var sent struct{ ID string }
	hello := map[string]any{"from": victim.number, "to": mobile, "body": "hello"}
	victim.Want(201, "POST", "/sms", hello, &sent)
	rig.Until(t, "a sent message", 20*time.Second, func() bool { return victim.message(sent.ID) == "sent" })

	answers := make(chan smpp.Status, 10)
	evil := serveSMPP(t, func(_ int, p *smppPeer) {
		pdu, _ := p.receive()
		acceptRequest(p, pdu, "")
		for _, id := range []string{"1", sent.ID} {
			p.send(smpp.DeliverSM, receipt(mobile, victim.number, id, "UNDELIV"))
		}
		p.send(smpp.DeliverSM, submission(mobile, victim.number, "from a foreign carrier"))
		for {
			pdu, ok := p.receive()
			if !ok {
				return
			}
			if pdu.Command == smpp.DeliverSM.Response() {
				answers <- pdu.Status
				continue
			}
			acceptRequest(p, pdu, "1")
		}
	})
	mallory.waitCarrier(mallory.connect(evil.Addr()))
	for range 3 {
		<-answers
	}
	if got := victim.message(sent.ID); got != "sent" {
		t.Errorf("the receipt of a foreign carrier made the message %s", got)
	}
	var all struct{ Data []map[string]any }
	if victim.Want(200, "GET", "/sms?direction=inbound", nil, &all); len(all.Data) != 0 {
		t.Errorf("a foreign carrier delivered %v", all.Data)
	}
	victim.Want(201, "POST", "/sms", hello, nil)
	rig.Until(t, "the receipt of the own carrier", 20*time.Second, func() bool { return victim.message(sent.ID) == "delivered" })
}

// TestSMPP_HostileCarrier covers a carrier that answers with garbage. Another organisation's messages go on.
func TestSMPP_HostileCarrier(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, smppFlags(t))
	mallory, other := newSMPPOrg(t, s, 100), newSMPPOrg(t, s, 100)
	const mobile = "+12025550170"
	last := make(chan int, 100)
	var goesOn atomic.Int64 // connections on which the server waits for the rest of what is no PDU
	waitEnd := func(p *smppPeer) {
		if !p.isEnded() {
			goesOn.Add(1)
		}
	}
	hostile := []func(p *smppPeer, bind smpp.PDU){
		func(p *smppPeer, _ smpp.PDU) { _, _ = p.Write(bytes.Repeat([]byte{0xa5}, 100_000)); waitEnd(p) },
		func(p *smppPeer, b smpp.PDU) { p.send(smpp.BindTransceiver.Response(), nil, b.Sequence+7) },
		func(p *smppPeer, b smpp.PDU) {
			acceptRequest(p, b, "")
			_, _ = p.Write([]byte{0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 1})
			_, _ = p.Write(bytes.Repeat([]byte("x"), 1<<20))
			waitEnd(p)
		},
		func(p *smppPeer, b smpp.PDU) {
			acceptRequest(p, b, "")
			for i := range 3000 {
				m := submission(mobile, mallory.number, "")
				m.ESMClass, m.ShortMessage = 0x40, append([]byte{6, 8, 4, byte(i >> 8), byte(i), 255, 1}, "x"...)
				p.send(smpp.DeliverSM, m)
			}
		},
		func(p *smppPeer, b smpp.PDU) { acceptRequest(p, b, ""); _, _ = p.Write([]byte{0, 0, 0}) },
	}
	evil := serveSMPP(t, func(n int, p *smppPeer) {
		bind, ok := p.receive()
		if ok && n < len(hostile) {
			hostile[n](p, bind)
		}
		last <- n
	})
	grown := growth(t, s, func() {
		mallory.connect(evil.Addr())
		for n := range last { // the server connects again after a pause
			if n >= 3 {
				break
			}
		}
	})
	if grown > 50<<20 {
		t.Errorf("a hostile carrier took %d MB", grown>>20)
	}
	if n := goesOn.Load(); n > 0 {
		t.Errorf("%d connections with PDUs of gigabytes went on", n)
	}
	honest := other.listen(t)
	other.waitCarrier(other.connect(honest.Addr()))
	var sent struct{ ID string }
	other.Want(201, "POST", "/sms", map[string]any{"from": other.number, "to": mobile, "body": "hello"}, &sent)
	rig.Until(t, "a sent message", 20*time.Second, func() bool { return other.message(sent.ID) == "sent" })
}
