package sip

import (
	"strconv"
	"strings"
)

// request handles a request of the other side inside the dialog.
func (l *Leg) request(m *message) {
	s := l.shard
	if m.cseq < l.remoteSeq {
		s.reply(m, 500, "") // RFC 3261 §12.2.2: out of order
		return
	}
	l.remoteSeq = m.cseq
	if l.symmetric {
		l.flow = m.flow // the phone's NAT may have given it a new port
	}
	if l.state == legEnding || l.state == legCanceling {
		l.requestWhileEnding(m)
		return
	}
	switch m.method {
	case "BYE":
		s.reply(m, 200, "")
		q850, text := readReason(m.get(fReason))
		l.end(Bye{Reason: text, Q850: q850})
	case "INVITE":
		l.reoffered(m)
	case "INFO":
		l.info(m)
	case "REFER":
		l.refer(m)
	case "NOTIFY":
		l.notified(m)
	default: // OPTIONS
		s.options(m)
	}
}

// requestWhileEnding: a BYE crosses ours; all else is too late.
func (l *Leg) requestWhileEnding(m *message) {
	if m.method == "BYE" {
		l.shard.reply(m, 200, "")
		return
	}
	l.shard.reply(m, 481, "")
}

// readReason reads a Reason field (RFC 3326).
func readReason(s string) (q850 int, text string) {
	for s != "" {
		var r string
		r, s = cutElement(s)
		protocol, params, _ := strings.Cut(r, ";")
		cause, _ := paramOf(";"+params, "cause")
		if t, ok := paramOf(";"+params, "text"); ok && text == "" {
			text = t
		}
		if strings.EqualFold(strings.TrimSpace(protocol), "Q.850") {
			q850, _ = strconv.Atoi(cause)
		}
	}
	return q850, text
}

// deferred makes the transaction of a request the switch answers later.
// The returned function answers it once, on the shard.
func (l *Leg) deferred(m *message) func(status int, extra string) {
	s := l.shard
	tx := s.serve(m, s.txKey(m, m.method))
	tx.limit(s)
	head := m.appendHead(nil, "")
	return func(status int, extra string) {
		s.buf = append(appendStatus(s.buf[:0], status, ""), head...)
		s.buf = appendBody(append(s.buf, extra...), "", nil)
		tx.respond(s, status, s.buf)
	}
}

func (l *Leg) info(m *message) {
	if l.state == legRinging {
		l.shard.reply(m, 481, "")
		return
	}
	respond := l.deferred(m)
	l.emit(Info{ContentType: m.get(fContentType), Body: []byte(m.body), Respond: func(status int) {
		l.post(func() { respond(status, "") })
	}})
}

// reoffer is a re-INVITE of the other side that waits for the switch.
type reoffer struct {
	tx   *serverTx
	seq  uint32
	head []byte
	late bool
}

// reoffered handles a re-INVITE (RFC 3261 §14.2).
func (l *Leg) reoffered(m *message) {
	s := l.shard
	switch {
	case l.reinvite != nil:
		s.refuseTx(m, 491, "")
		return
	case l.offered != nil || l.unacked != nil || l.state != legConfirmed:
		s.refuseTx(m, 500, "Retry-After: "+strconv.Itoa(1+int(m.cseq%10))+"\r\n")
		return
	}
	if t := contactURI(m); t != "" {
		l.path.target = t // RFC 3261 §12.2.2: target refresh
	}
	tx := s.serve(m, s.txKey(m, "INVITE"))
	r := &reoffer{tx: tx, seq: m.cseq, head: m.appendHead(nil, ""), late: m.body == ""}
	l.offered = r
	tx.leg = l
	s.buf = appendBody(append(appendStatus(s.buf[:0], 100, ""), r.head...), "", nil)
	tx.respond(s, 100, s.buf)
	var sdp []byte
	if !r.late {
		sdp = []byte(m.body)
	}
	l.emit(Reinvite{SDP: sdp, Respond: func(status int, sdp []byte) {
		l.post(func() { r.respond(l, status, sdp) })
	}})
}

// refuseTx refuses an INVITE inside a dialog.
func (s *shard) refuseTx(m *message, status int, extra string) {
	tx := s.serve(m, s.txKey(m, "INVITE"))
	s.buf = m.appendResponse(s.buf[:0], status, "", "", extra)
	tx.respond(s, status, s.buf)
}

// respond answers the re-INVITE once.
func (r *reoffer) respond(l *Leg, status int, sdp []byte) {
	if l.offered != r {
		return
	}
	l.offered = nil
	s := l.shard
	b := append(appendStatus(s.buf[:0], status, ""), r.head...)
	if status < 300 {
		b = appendField(b, "Contact", l.contact)
		b = appendField(b, "Allow", s.srv.allow)
	}
	s.buf = appendBody(b, sdpType, sdp)
	r.tx.respond(s, status, s.buf)
	if status >= 200 && status < 300 {
		l.awaitAck(&unacked{seq: r.seq, response: append([]byte(nil), s.buf...), flow: r.tx.flow, late: r.late})
	}
}
