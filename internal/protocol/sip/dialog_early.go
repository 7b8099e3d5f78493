package sip

import (
	"strconv"
	"strings"

	"soniq/internal/protocol/sip/sipmsg"
)

// Early dialogs of an outgoing INVITE, and PRACK of its reliable provisional responses.

// earlyDialog is an early dialog of an outgoing call, one per fork (RFC 3261 §12.1.2).
type earlyDialog struct {
	to            string // To value of requests, with the tag
	path          dialogRoute
	sdp           []byte // SDP of its last provisional response with one
	seq           uint32 // CSeq of its last request
	rseq          uint32 // RSeq of its last reliable response, 0 before
	offerAnswered bool   // it answered our offer reliably
}

// maxForks bounds the early dialogs of one call.
const maxForks = 16

// earlyDialog returns the early dialog with a tag, or nil.
func (l *Leg) earlyDialog(tag string) *earlyDialog {
	if l.outgoingInvite == nil {
		return nil
	}
	return l.outgoingInvite.earlyDialogs[tag]
}

// peerSeq returns the address of the last CSeq of the peer's requests.
func (l *Leg) peerSeq(tag string) *uint32 {
	if e := l.earlyDialog(tag); e != nil {
		return &e.seq
	}
	return &l.remoteSeq
}

// earlyDialogFor returns the early dialog of a provisional response, and creates it if needed. It returns nil if the
// response has no tag or there are too many dialogs.
func (c *outgoingInvite) earlyDialogFor(m *received) *earlyDialog {
	e := c.earlyDialogs[m.To.Tag]
	if e == nil {
		if m.To.Tag == "" || len(c.earlyDialogs) >= maxForks {
			return nil
		}
		if c.earlyDialogs == nil {
			c.earlyDialogs = make(map[string]*earlyDialog, 1)
		}
		e = &earlyDialog{}
		c.earlyDialogs[strings.Clone(m.To.Tag)] = e
	}
	e.to, e.path = m.To.Value, routeFromResponse(m, c.path.target)
	return e
}

func (l *Leg) handleProvisional(m *received) {
	if m.Status == 100 {
		return
	}
	l.learnAllow(m)
	e := l.outgoingInvite.earlyDialogFor(m)
	p := Provisional{Status: m.Status, Reason: m.Reason, Tag: m.To.Tag}
	if sdp := m.SDP(); sdp != "" {
		p.SDP = []byte(sdp)
	}
	if e != nil && m.HasOptionTag(sipmsg.FieldRequire, "100rel") && !l.sendPRACK(m, e, p.SDP) {
		return
	}
	if e != nil && p.SDP != nil {
		e.sdp = p.SDP
	}
	l.emit(p)
}

// sendPRACK sends the PRACK of a reliable response (RFC 3262 §4). It returns false for a repetition, or if an
// earlier response is missing.
func (l *Leg) sendPRACK(m *received, e *earlyDialog, sdp []byte) bool {
	n, err := strconv.ParseUint(m.GetNamed("RSeq"), 10, 32)
	if err != nil || n == 0 {
		return true // not reliable after all
	}
	if rseq := uint32(n); e.rseq != 0 && rseq != e.rseq+1 {
		return false
	}
	e.rseq = uint32(n)
	if sdp != nil && !l.outgoingInvite.lateOffer {
		e.offerAnswered = true
	}
	rack := "RAck: " + strconv.FormatUint(n, 10) + " " + strconv.FormatUint(uint64(m.CSeq), 10) + " INVITE\r\n"
	l.sendInDialog(requestTemplate{method: "PRACK", path: e.path, to: e.to, extraFields: rack}, func(*received, int) {})
	return true
}
