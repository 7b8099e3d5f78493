package sip

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"soniq/internal/protocol/sip/sipmsg"
)

// Reliable provisional responses of an incoming INVITE: 100rel and PRACK (RFC 3262).

// reliableProvisional sends the provisional responses of an inbound call reliably (RFC 3262 §3): one at a time, each
// repeated until its PRACK arrives.
type reliableProvisional struct {
	timer
	leg           *Leg
	required      bool   // the caller requires 100rel for all of them
	seq           uint32 // RSeq of the last one
	awaitingPRACK bool   // the last one waits for its PRACK
	sdp           []byte // SDP of the last one
	response      []byte
	interval      time.Duration
	deadline      time.Duration
	afterPRACK    []func() // actions that wait for the PRACK
}

// ringRepeatInterval is how often the provisional response of a ringing call is repeated. Otherwise proxies on the
// way end the call (RFC 3261 §13.3.1.1).
const ringRepeatInterval = time.Minute

// maxWaitingForPRACK bounds the provisional responses that wait for a PRACK.
const maxWaitingForPRACK = 16

// newReliable returns nil if the caller does not support 100rel.
func newReliable(l *Leg, m *received) *reliableProvisional {
	required := m.HasOptionTag(sipmsg.FieldRequire, "100rel")
	if !required && !m.HasOptionTag(sipmsg.FieldSupported, "100rel") {
		return nil
	}
	p := &reliableProvisional{leg: l, required: required, seq: rand.Uint32N(1 << 30)}
	p.owner = p
	return p
}

// sendProvisional sends a provisional response. It never carries an offer: the caller's answer would arrive before
// the switch expects it.
func (l *Leg) sendProvisional(status int, sdp []byte) {
	p := l.reliable
	if l.state != legRinging || status <= 100 || status >= 200 {
		return
	}
	if l.lateOffer {
		sdp = nil
	}
	l.lastProvisional = status
	l.shard.timers.set(&l.timer, l.shard.now+ringRepeatInterval)
	switch {
	case p == nil || !p.required && len(sdp) == 0:
		l.respondToInvite(status, "", sdp)
	case p.awaitingPRACK:
		p.runAfterPRACK(func() { l.sendProvisional(status, sdp) })
	default:
		p.send(status, sdp)
	}
}

// runAfterPRACK runs do once the PRACK has arrived. It drops do if too many actions wait.
func (p *reliableProvisional) runAfterPRACK(do func()) {
	if len(p.afterPRACK) < maxWaitingForPRACK {
		p.afterPRACK = append(p.afterPRACK, do)
	}
}

func (p *reliableProvisional) send(status int, sdp []byte) {
	l := p.leg
	s := l.shard
	p.seq++
	p.awaitingPRACK, p.sdp = true, append([]byte(nil), sdp...)
	extra := "Require: 100rel\r\nRSeq: " + strconv.FormatUint(uint64(p.seq), 10) + "\r\n"
	l.respondToInvite(status, extra, sdp)
	p.response = append([]byte(nil), s.buf...)
	p.interval, p.deadline = t1, s.now+txTimeout
	s.timers.set(&p.timer, s.now+t1)
}

// expire repeats the response. Without a PRACK within 64*T1 the call is refused with 504.
func (p *reliableProvisional) expire(s *shard) {
	l := p.leg
	if !p.awaitingPRACK || l.state != legRinging {
		return
	}
	if s.now >= p.deadline {
		l.respondToInvite(504, "", nil)
		l.terminate(Lost{Why: "a provisional response was never acknowledged"})
		return
	}
	s.stats.retransmissions.Add(1)
	s.sender.Send(l.inviteServerTx.flow, p.response)
	p.interval *= 2
	s.timers.set(&p.timer, min(s.now+p.interval, p.deadline))
}

// blocksAnswer reports whether a 2xx must wait for the PRACK of a response with SDP.
func (p *reliableProvisional) blocksAnswer() bool {
	return p != nil && p.awaitingPRACK && len(p.sdp) > 0
}

// stop ends the repetitions because a final response was sent.
func (p *reliableProvisional) stop(s *shard) {
	if p != nil {
		s.timers.stop(&p.timer)
		p.response, p.afterPRACK = nil, nil
	}
}

// handlePRACK handles a PRACK (RFC 3262 §3). An offer in it is handed to the switch.
func (l *Leg) handlePRACK(m *received) {
	s, p := l.shard, l.reliable
	if p == nil || !p.awaitingPRACK || !l.matchesRAck(m.GetNamed("RAck"), p.seq) {
		s.reply(m, 481, "")
		return
	}
	p.awaitingPRACK, p.response = false, nil
	s.timers.stop(&p.timer)
	if len(p.sdp) > 0 {
		l.offerAnswered = true
		l.noteLocalSDP(p.sdp)
	}
	switch {
	case m.SDP() == "":
		s.reply(m, 200, "")
	case !l.offerAnswered || l.ownOfferPending() || l.pendingReinvite != nil || l.state != legRinging:
		s.reply(m, 488, "")
	default:
		l.emitOffer(m, Reinvite{Early: true})
	}
	queue := p.afterPRACK
	p.afterPRACK = nil
	for _, do := range queue {
		do()
	}
}

// matchesRAck reports whether a RAck value names the response rseq to the INVITE of this leg.
func (l *Leg) matchesRAck(rack string, rseq uint32) bool {
	f := strings.Fields(rack)
	if len(f) != 3 || f[2] != "INVITE" {
		return false
	}
	n, err := strconv.ParseUint(f[0], 10, 32)
	c, err2 := strconv.ParseUint(f[1], 10, 32)
	return err == nil && err2 == nil && uint32(n) == rseq && uint32(c) == l.inviteSeq
}
