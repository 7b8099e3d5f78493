package sip

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// reliable sends the provisional responses of an inbound call so that none is
// lost (RFC 3262 §3): one at a time, again until its PRACK comes.
type reliable struct {
	timer
	leg      *Leg
	required bool   // the caller wants all of them so
	seq      uint32 // RSeq of the last one
	open     bool   // it waits for its PRACK
	sdp      []byte // it carries
	response []byte
	interval time.Duration
	end      time.Duration
	queue    []func() // what may go on after the PRACK
}

// ringPause is how often a call that rings is told so again, or proxies on the
// way give it up (RFC 3261 §13.3.1.1).
const ringPause = time.Minute

// maxQueued bounds the provisional responses that wait for a PRACK.
const maxQueued = 16

// newReliable is nil for callers who do not know 100rel.
func newReliable(l *Leg, m *message) *reliable {
	required := m.tagged(fRequire, "100rel")
	if !required && !m.tagged(fSupported, "100rel") {
		return nil
	}
	p := &reliable{leg: l, required: required, seq: rand.Uint32N(1 << 30)}
	p.owner = p
	return p
}

// ring sends a provisional response. An offer of ours has no place in it: the
// caller's answer would come before the switch asks for it.
func (l *Leg) ring(status int, sdp []byte) {
	p := l.reliable
	if l.state != legRinging || status <= 100 || status >= 200 {
		return
	}
	if l.lateOffer {
		sdp = nil
	}
	l.rang = status
	l.shard.timers.set(&l.timer, l.shard.now+ringPause)
	switch {
	case p == nil || !p.required && len(sdp) == 0:
		l.respond(status, "", "", sdp)
	case p.open:
		p.after(func() { l.ring(status, sdp) })
	default:
		p.send(status, sdp)
	}
}

// after does something when the PRACK has come.
func (p *reliable) after(do func()) {
	if len(p.queue) < maxQueued {
		p.queue = append(p.queue, do)
	}
}

func (p *reliable) send(status int, sdp []byte) {
	l := p.leg
	s := l.shard
	p.seq++
	p.open, p.sdp = true, append([]byte(nil), sdp...)
	extra := "Require: 100rel\r\nRSeq: " + strconv.FormatUint(uint64(p.seq), 10) + "\r\n"
	l.respond(status, "", extra, sdp)
	p.response = append([]byte(nil), s.buf...)
	p.interval, p.end = t1, s.now+patience
	s.timers.set(&p.timer, s.now+t1)
}

// expire repeats the response; without a PRACK the call is refused.
func (p *reliable) expire(s *shard) {
	l := p.leg
	if !p.open || l.state != legRinging {
		return
	}
	if s.now >= p.end {
		l.respond(504, "", "", nil)
		l.end(Lost{Why: "a provisional response was never acknowledged"})
		return
	}
	s.stats.retransmissions.Add(1)
	s.wire.send(l.invite.flow, p.response)
	p.interval *= 2
	s.timers.set(&p.timer, min(s.now+p.interval, p.end))
}

// holds: a 2xx must wait for the PRACK of a response with SDP.
func (p *reliable) holds() bool { return p != nil && p.open && len(p.sdp) > 0 }

// stop ends the repetitions: a final response is out.
func (p *reliable) stop(s *shard) {
	if p != nil {
		s.timers.stop(&p.timer)
		p.response, p.queue = nil, nil
	}
}

// pracked handles a PRACK (RFC 3262 §3). An offer in it goes to the switch.
func (l *Leg) pracked(m *message) {
	s, p := l.shard, l.reliable
	if p == nil || !p.open || !l.names(m.named("RAck"), p.seq) {
		s.reply(m, 481, "")
		return
	}
	p.open, p.response = false, nil
	s.timers.stop(&p.timer)
	if len(p.sdp) > 0 {
		l.agreed = true
		l.say(p.sdp)
	}
	switch {
	case m.body == "":
		s.reply(m, 200, "")
	case !l.agreed || l.offering() || l.offered != nil || l.state != legRinging:
		s.reply(m, 488, "")
	default:
		l.offer(m, Reinvite{Early: true})
	}
	queue := p.queue
	p.queue = nil
	for _, do := range queue {
		do()
	}
}

// names tells whether a RAck value is that of a response to our caller's
// INVITE.
func (l *Leg) names(rack string, rseq uint32) bool {
	f := strings.Fields(rack)
	if len(f) != 3 || f[2] != "INVITE" {
		return false
	}
	n, err := strconv.ParseUint(f[0], 10, 32)
	c, err2 := strconv.ParseUint(f[1], 10, 32)
	return err == nil && err2 == nil && uint32(n) == rseq && uint32(c) == l.inviteSeq
}
