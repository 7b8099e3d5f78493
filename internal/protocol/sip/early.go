package sip

import (
	"strconv"
	"strings"
)

// early is an early dialog of an outgoing call, one per fork
// (RFC 3261 §12.1.2).
type early struct {
	to     string // To value of requests, with the tag
	path   path
	sdp    []byte // of its last provisional response with one
	seq    uint32 // of the last request of that side
	rseq   uint32 // of its last reliable response, 0 before
	agreed bool   // it answered our offer reliably
}

// maxForks bounds the early dialogs of one call.
const maxForks = 16

// early is the early dialog with a tag, nil when there is none.
func (l *Leg) early(tag string) *early {
	if l.call == nil {
		return nil
	}
	return l.call.early[tag]
}

// lastSeq is where the last CSeq of the other side's requests is kept.
func (l *Leg) lastSeq(tag string) *uint32 {
	if e := l.early(tag); e != nil {
		return &e.seq
	}
	return &l.remoteSeq
}

// fork finds or makes the early dialog of a provisional response; nil when it
// makes none or there are too many.
func (c *placed) fork(m *message) *early {
	e := c.early[m.to.tag]
	if e == nil {
		if m.to.tag == "" || len(c.early) >= maxForks {
			return nil
		}
		if c.early == nil {
			c.early = make(map[string]*early, 1)
		}
		e = &early{}
		c.early[strings.Clone(m.to.tag)] = e
	}
	e.to, e.path = m.to.value, answeredPath(m, c.path.target)
	return e
}

func (l *Leg) provisional(m *message) {
	if m.status == 100 {
		return
	}
	l.learn(m)
	e := l.call.fork(m)
	p := Provisional{Status: m.status, Reason: m.reason, Tag: m.to.tag}
	if m.body != "" && isType(m.get(fContentType), sdpType) {
		p.SDP = []byte(m.body)
	}
	if e != nil && m.tagged(fRequire, "100rel") && !l.acknowledge(m, e, p.SDP) {
		return
	}
	if e != nil && p.SDP != nil {
		e.sdp = p.SDP
	}
	l.emit(p)
}

// acknowledge sends the PRACK of a reliable response (RFC 3262 §4); false when
// it is a repetition, or one before it is missing.
func (l *Leg) acknowledge(m *message, e *early, sdp []byte) bool {
	n, err := strconv.ParseUint(m.named("RSeq"), 10, 32)
	if err != nil || n == 0 {
		return true // not reliable after all
	}
	if rseq := uint32(n); e.rseq != 0 && rseq != e.rseq+1 {
		return false
	}
	e.rseq = uint32(n)
	if sdp != nil && !l.call.late {
		e.agreed = true
	}
	rack := "RAck: " + strconv.FormatUint(n, 10) + " " + strconv.FormatUint(uint64(m.cseq), 10) + " INVITE\r\n"
	l.transact(outline{method: "PRACK", path: e.path, to: e.to, extra: rack}, func(*message, int) {})
	return true
}
