package sip

import (
	"strconv"
	"strings"
)

// Early dialogs of an outgoing INVITE, and PRACK of its reliable provisional responses.

// earlyDialog is an early dialog of an outgoing call, one per fork (RFC 3261 §12.1.2).
type early struct {
	to     string // To value of requests, with the tag
	path   path
	sdp    []byte // SDP of its last provisional response with one
	seq    uint32 // CSeq of its last request
	rseq   uint32 // RSeq of its last reliable response, 0 before
	agreed bool   // it answered our offer reliably
}

// maxForks bounds the early dialogs of one call.
const maxForks = 16

// earlyDialog returns the early dialog with a tag, or nil.
func (l *Leg) early(tag string) *early {
	if l.call == nil {
		return nil
	}
	return l.call.early[tag]
}

// peerSeq returns the address of the last CSeq of the peer's requests.
func (l *Leg) lastSeq(tag string) *uint32 {
	if e := l.early(tag); e != nil {
		return &e.seq
	}
	return &l.remoteSeq
}

// earlyDialogFor returns the early dialog of a provisional response, and creates it if needed. It returns nil if the
// response has no tag or there are too many dialogs.
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

// sendPRACK sends the PRACK of a reliable response (RFC 3262 §4). It returns false for a repetition, or if an
// earlier response is missing.
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
