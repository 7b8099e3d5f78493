package media

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"soniq/internal/protocol/media/mediatest"
	"soniq/internal/protocol/media/sdp"
	"soniq/internal/protocol/media/stun"
)

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
	terms := sdp.NewICEParameters()
	terms.RemoteUfrag, terms.RemotePassword, terms.Controlling = "them", "their-password", controlling
	p.iceAgent = newICEAgent(s, terms)
	return p
}

// sendRequest passes a check of the other side to the agent.
func (p *icePeer) sendRequest(from netip.AddrPort, use bool, role uint16, tie uint64) bool {
	var w stun.Writer
	w.Begin(stun.Request, stun.TransactionID{9})
	name := p.params.Ufrag + ":" + p.params.RemoteUfrag
	copy(w.Add(stun.Username, len(name)), name)
	binary.BigEndian.PutUint32(w.Add(stun.Priority, 4), 77)
	binary.BigEndian.PutUint64(w.Add(role, 8), tie)
	if use {
		w.Add(stun.UseCandidate, 0)
	}
	return p.receive(w.End(mediatest.MacOf(p.params.Password)), from, p.now)
}

// sendResponse passes to the agent a response to its last check of an address.
func (p *icePeer) sendResponse(to netip.AddrPort, kind uint16, code byte) bool {
	pair := p.find(to)
	var w stun.Writer
	w.Begin(kind, pair.tx)
	if code > 0 {
		copy(w.Add(stun.ErrorCode, 4), []byte{0, 0, code / 100, code % 100})
	}
	return p.receive(w.End(mediatest.MacOf(p.params.RemotePassword)), to, p.now)
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
	if p.isProved(p.at) || !p.sendRequest(p.at, true, stun.Controlling, 1) || !p.isProved(p.at) {
		t.Fatal("the check was not taken")
	}
	if m, ok := stun.Parse(p.wire.sent[0]); !ok || m.Kind != stun.Success || !m.Authenticates(p.wire.sent[0], p.localMAC) ||
		p.wire.to[0] != p.at {
		t.Fatalf("answered with %x", p.wire.sent[0])
	}
	if p.destination().IsValid() {
		t.Error("media is sent before our own check came back")
	}
	p.sendDueChecks()
	m, ok := stun.Parse(p.wire.sent[1])
	if !ok || m.Kind != stun.Request || string(m.Username) != "them:"+p.params.Ufrag || !m.Controlled || m.UseCandidate ||
		!m.Authenticates(p.wire.sent[1], p.remoteMAC) {
		t.Fatalf("our check: %+v", m)
	}
	if !p.sendResponse(p.at, stun.Success, 0) || p.destination() != p.at || p.selected == nil {
		t.Errorf("media goes to %v", p.destination())
	}
}

func TestICE_ControllingSideNominates(t *testing.T) {
	t.Parallel()
	p := newICEPeer(t, true)
	p.startCheck(p.add(p.at, 5), p.now, false)
	p.sendDueChecks()
	p.sendResponse(p.at, stun.Success, 0)
	if p.selected != nil || p.nominating == nil {
		t.Fatal("not nominated by a second check")
	}
	p.sendDueChecks()
	if m, _ := stun.Parse(p.wire.sent[1]); !m.UseCandidate || !m.Controlling {
		t.Errorf("the nomination: %+v", m)
	}
	p.sendResponse(p.at, stun.Success, 0)
	if p.selected == nil || p.destination() != p.at {
		t.Error("not selected")
	}
}

func TestICE_InvalidResponsesIgnored(t *testing.T) {
	t.Parallel()
	p := newICEPeer(t, true)
	p.startCheck(p.add(p.at, 5), p.now, false)
	p.sendDueChecks()
	var w stun.Writer
	w.Begin(stun.Success, stun.TransactionID{1})
	other := netip.MustParseAddrPort("192.0.2.10:5000")
	if p.receive(w.End(p.remoteMAC), p.at, p.now) { // not our transaction
		t.Error("a foreign transaction was taken")
	}
	w.Begin(stun.Success, p.pairs[0].tx)
	if p.receive(w.End(mediatest.MacOf("guess")), p.at, p.now) {
		t.Error("an answer without the password was taken")
	}
	w.Begin(stun.Success, p.pairs[0].tx)
	if p.receive(w.End(p.remoteMAC), other, p.now) { // RFC 8445 §7.2.5.2.1
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
		{true, stun.Controlling, 0, true, true},
		{true, stun.Controlling, 1<<64 - 1, false, false},
		{false, stun.Controlled, 0, false, true},
		{false, stun.Controlled, 1<<64 - 1, true, false},
	} {
		p := newICEPeer(t, c.controlling)
		p.params.TieBreaker = 1 << 63
		p.sendRequest(p.at, false, c.role, c.tie)
		m, _ := stun.Parse(p.wire.sent[0])
		if refused := m.Code == stun.RoleConflict; refused != c.refused || p.params.Controlling != c.after {
			t.Errorf("%+v: refused %v, controlling %v", c, refused, p.params.Controlling)
		}
	}
	p := newICEPeer(t, true)
	p.startCheck(p.add(p.at, 5), p.now, false)
	p.sendDueChecks()
	p.sendResponse(p.at, stun.Error, 0)
	if !p.params.Controlling {
		t.Error("gave in to an error that says nothing")
	}
	var w stun.Writer
	w.Begin(stun.Error, p.pairs[0].tx)
	copy(w.Add(stun.ErrorCode, 4), []byte{0, 0, 4, 87})
	p.receive(w.End(p.remoteMAC), p.at, p.now)
	if p.params.Controlling {
		t.Error("did not give in to 487")
	}
}

func TestICE_ConsentExpiresAndReturns(t *testing.T) {
	t.Parallel()
	p := newICEPeer(t, false)
	p.sendRequest(p.at, true, stun.Controlling, 1)
	p.sendDueChecks()
	p.sendResponse(p.at, stun.Success, 0)
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
	p.sendResponse(p.at, stun.Success, 0)
	if p.destination() != p.at {
		t.Error("media does not flow again")
	}
}

func TestICE_ChecksBounded(t *testing.T) {
	t.Parallel()
	p := newICEPeer(t, false)
	for port := range uint16(1000) {
		p.sendRequest(netip.AddrPortFrom(p.at.Addr(), port+1), true, stun.Controlling, 1)
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
