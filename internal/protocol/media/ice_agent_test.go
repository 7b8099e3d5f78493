package media

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func hexBytes(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.NewReplacer(" ", "", "\n", "", "\t", "").Replace(s))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func macOf(password string) hash.Hash { return hmac.New(sha1.New, []byte(password)) }

// RFC 5769 §2.1 and §2.2.
const (
	vectorPassword = "VOkJxbRl1RmTxUk/WvJxBt"
	vectorRequest  = `000100582112a442b7e7a701bc34d686fa87dfae 802200105354554e207465737420636c69656e74
		002400046e0001ff 80290008932ff9b151263b36 000600096576746a3a68367659202020
		000800149aeaa70cbfd8cb56781ef2b5b2d3f249c1b571a2 80280004e57a3bcf`
	vectorResponse = `0101003c2112a442b7e7a701bc34d686fa87dfae 8022000b7465737420766563746f7220
		002000080001a147e112a643 000800142b91f599fd9e90c38c7489f92af9ba53f06be7d7 80280004c07d4c96`
)

func TestSTUN_RFC5769Vectors(t *testing.T) {
	t.Parallel()
	b := hexBytes(t, vectorRequest)
	m, ok := parseSTUN(b)
	if !ok || m.kind != stunRequest || string(m.username) != "evtj:h6vY" || m.priority != 0x6e0001ff || !m.controlled || m.tieBreaker != 0x932ff9b151263b36 {
		t.Fatalf("%v %+v", ok, m)
	}
	if !m.authenticates(b, macOf(vectorPassword)) || m.authenticates(b, macOf("another")) {
		t.Error("the password is not checked as it should be")
	}
	for i := range m.integrity + 24 { // every change is detected
		c := bytes.Clone(b)
		c[i] ^= 1
		if m, ok := parseSTUN(c); ok && m.authenticates(c, macOf(vectorPassword)) {
			t.Errorf("byte %d can be changed", i)
		}
	}
	r := hexBytes(t, vectorResponse)
	if m, ok := parseSTUN(r); !ok || m.kind != stunSuccess || !m.authenticates(r, macOf(vectorPassword)) {
		t.Errorf("response %v %+v", ok, m)
	}
}

func TestSTUN_WriterRoundTrip(t *testing.T) {
	t.Parallel()
	var w stunWriter
	w.begin(stunSuccess, stunTx{1, 2, 3})
	w.addXORMappedAddress(netip.MustParseAddrPort("192.0.2.1:32853"))
	b := w.end(macOf("p"))
	want := hexBytes(t, "00200008 0001a147e112a643") // as in RFC 5769 §2.2
	if !bytes.Equal(b[stunHeaderLen:stunHeaderLen+12], want) {
		t.Errorf("mapped address %x", b[stunHeaderLen:stunHeaderLen+12])
	}
	if m, ok := parseSTUN(b); !ok || m.tx != (stunTx{1, 2, 3}) || !m.authenticates(b, macOf("p")) {
		t.Errorf("%v %+v", ok, m)
	}
	w.begin(stunSuccess, stunTx{})
	w.addXORMappedAddress(netip.MustParseAddrPort("[2001:db8::1]:1"))
	if _, ok := parseSTUN(w.end(macOf("p"))); !ok {
		t.Error("IPv6 answer not read")
	}
}

// recordingSocket is a socket that keeps the packets sent.
type recordingSocket struct {
	sent [][]byte
	to   []netip.AddrPort
}

func (w *recordingSocket) send(b []byte, to netip.AddrPort) bool {
	w.sent, w.to = append(w.sent, bytes.Clone(b)), append(w.to, to)
	return true
}
func (w *recordingSocket) close() {}

// icePeer is an agent whose packets are delivered by the test.
type icePeer struct {
	*iceAgent
	wire *recordingSocket
	at   netip.AddrPort
	now  int64
}

func newICEPeer(t *testing.T, controlling bool) *icePeer {
	t.Helper()
	s := openStream(t, testEngine(t, Config{}, newLoop))
	p := &icePeer{wire: &recordingSocket{}, at: netip.MustParseAddrPort("192.0.2.9:5000"), now: 1}
	real := s.rtp
	s.out.mu.Lock()
	s.rtp = p.wire
	s.out.mu.Unlock()
	t.Cleanup(func() {
		s.out.mu.Lock()
		s.rtp = real
		s.out.mu.Unlock()
	})
	terms := newICEParameters()
	terms.remoteUfrag, terms.remotePwd, terms.controlling = "them", "their-password", controlling
	p.iceAgent = newICEAgent(s, terms)
	return p
}

// sendRequest passes a check of the other side to the agent.
func (p *icePeer) sendRequest(from netip.AddrPort, use bool, role uint16, tie uint64) bool {
	var w stunWriter
	w.begin(stunRequest, stunTx{9})
	name := p.params.ufrag + ":" + p.params.remoteUfrag
	copy(w.add(stunUsername, len(name)), name)
	binary.BigEndian.PutUint32(w.add(stunPriority, 4), 77)
	binary.BigEndian.PutUint64(w.add(role, 8), tie)
	if use {
		w.add(stunUseCandidate, 0)
	}
	return p.receive(w.end(macOf(p.params.pwd)), from, p.now)
}

// sendResponse passes to the agent a response to its last check of an address.
func (p *icePeer) sendResponse(to netip.AddrPort, kind uint16, code byte) bool {
	pair := p.find(to)
	var w stunWriter
	w.begin(kind, pair.tx)
	if code > 0 {
		copy(w.add(stunErrorCode, 4), []byte{0, 0, code / 100, code % 100})
	}
	return p.receive(w.end(macOf(p.params.remotePwd)), to, p.now)
}

// sendDueChecks lets the agent send the checks that are due.
func (p *icePeer) sendDueChecks() {
	for _, pair := range p.pairs {
		if pair.nextSend > 0 && pair.nextSend <= p.now {
			p.sendCheck(pair, p.now)
		}
	}
}

func (p *icePeer) destination() netip.AddrPort {
	p.s.out.mu.Lock()
	defer p.s.out.mu.Unlock()
	return p.s.out.to
}

// The other side's .local candidate cannot be resolved. Its checks reveal its address.
func TestICE_PeerFoundByItsChecks(t *testing.T) {
	t.Parallel()
	p := newICEPeer(t, false)
	if p.isProved(p.at) || !p.sendRequest(p.at, true, stunControlling, 1) || !p.isProved(p.at) {
		t.Fatal("the check was not taken")
	}
	if m, ok := parseSTUN(p.wire.sent[0]); !ok || m.kind != stunSuccess || !m.authenticates(p.wire.sent[0], p.localMAC) || p.wire.to[0] != p.at {
		t.Fatalf("answered with %x", p.wire.sent[0])
	}
	if p.destination().IsValid() {
		t.Error("media is sent before our own check came back")
	}
	p.sendDueChecks()
	m, ok := parseSTUN(p.wire.sent[1])
	if !ok || m.kind != stunRequest || string(m.username) != "them:"+p.params.ufrag || !m.controlled || m.useCandidate || !m.authenticates(p.wire.sent[1], p.remoteMAC) {
		t.Fatalf("our check: %+v", m)
	}
	if !p.sendResponse(p.at, stunSuccess, 0) || p.destination() != p.at || p.selected == nil {
		t.Errorf("media goes to %v", p.destination())
	}
}

func TestICE_ControllingSideNominates(t *testing.T) {
	t.Parallel()
	p := newICEPeer(t, true)
	p.startCheck(p.add(p.at, 5), p.now, false)
	p.sendDueChecks()
	p.sendResponse(p.at, stunSuccess, 0)
	if p.selected != nil || p.nominating == nil {
		t.Fatal("not nominated by a second check")
	}
	p.sendDueChecks()
	if m, _ := parseSTUN(p.wire.sent[1]); !m.useCandidate || !m.controlling {
		t.Errorf("the nomination: %+v", m)
	}
	p.sendResponse(p.at, stunSuccess, 0)
	if p.selected == nil || p.destination() != p.at {
		t.Error("not selected")
	}
}

func TestICE_InvalidResponsesIgnored(t *testing.T) {
	t.Parallel()
	p := newICEPeer(t, true)
	p.startCheck(p.add(p.at, 5), p.now, false)
	p.sendDueChecks()
	var w stunWriter
	w.begin(stunSuccess, stunTx{1})
	other := netip.MustParseAddrPort("192.0.2.10:5000")
	if p.receive(w.end(p.remoteMAC), p.at, p.now) { // not our transaction
		t.Error("a foreign transaction was taken")
	}
	w.begin(stunSuccess, p.pairs[0].tx)
	if p.receive(w.end(macOf("guess")), p.at, p.now) {
		t.Error("an answer without the password was taken")
	}
	w.begin(stunSuccess, p.pairs[0].tx)
	if p.receive(w.end(p.remoteMAC), other, p.now) { // RFC 8445 §7.2.5.2.1
		t.Error("an answer from elsewhere was taken")
	}
	if p.isProved(p.at) || p.isProved(other) {
		t.Error("somebody is known who proved nothing")
	}
}

func TestICE_RoleConflictResolved(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		controlling bool
		role        uint16
		tie         uint64
		refused     bool
		after       bool
	}{
		{true, stunControlling, 0, true, true},
		{true, stunControlling, 1<<64 - 1, false, false},
		{false, stunControlled, 0, false, true},
		{false, stunControlled, 1<<64 - 1, true, false},
	} {
		p := newICEPeer(t, c.controlling)
		p.params.tieBreaker = 1 << 63
		p.sendRequest(p.at, false, c.role, c.tie)
		m, _ := parseSTUN(p.wire.sent[0])
		if refused := m.code == roleConflict; refused != c.refused || p.params.controlling != c.after {
			t.Errorf("%+v: refused %v, controlling %v", c, refused, p.params.controlling)
		}
	}
	p := newICEPeer(t, true)
	p.startCheck(p.add(p.at, 5), p.now, false)
	p.sendDueChecks()
	p.sendResponse(p.at, stunError, 0)
	if !p.params.controlling {
		t.Error("gave in to an error that says nothing")
	}
	var w stunWriter
	w.begin(stunError, p.pairs[0].tx)
	copy(w.add(stunErrorCode, 4), []byte{0, 0, 4, 87})
	p.receive(w.end(p.remoteMAC), p.at, p.now)
	if p.params.controlling {
		t.Error("did not give in to 487")
	}
}

func TestICE_ConsentExpiresAndReturns(t *testing.T) {
	t.Parallel()
	p := newICEPeer(t, false)
	p.sendRequest(p.at, true, stunControlling, 1)
	p.sendDueChecks()
	p.sendResponse(p.at, stunSuccess, 0)
	p.now += consentInterval
	p.checkConsent(p.now)
	sent := len(p.wire.sent)
	p.sendDueChecks()
	if len(p.wire.sent) != sent+1 || p.destination() != p.at {
		t.Fatal("consent was not asked for again")
	}
	p.now += int64(time.Minute)
	p.checkConsent(p.now)
	if p.destination().IsValid() {
		t.Error("media is sent without consent")
	}
	p.sendDueChecks()
	p.sendResponse(p.at, stunSuccess, 0)
	if p.destination() != p.at {
		t.Error("media does not flow again")
	}
}

func TestICE_ChecksBounded(t *testing.T) {
	t.Parallel()
	p := newICEPeer(t, false)
	for port := range uint16(1000) {
		p.sendRequest(netip.AddrPortFrom(p.at.Addr(), port+1), true, stunControlling, 1)
	}
	if len(p.pairs) > maxPairs {
		t.Errorf("%d pairs", len(p.pairs))
	}
	for range 100 {
		p.now += int64(time.Second)
		p.sendDueChecks()
	}
	sent := len(p.wire.sent)
	p.now += int64(time.Second)
	p.sendDueChecks()
	if len(p.wire.sent) != sent {
		t.Error("checks that are never answered go on for ever")
	}
}
