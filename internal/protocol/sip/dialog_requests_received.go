package sip

import (
	"strconv"
	"strings"
)

// Requests received inside a dialog: BYE, INFO and dispatch of the others.

// handleRequest handles a request of the peer inside the dialog.
func (l *Leg) handleRequest(m *message) {
	s := l.shard
	last := l.peerSeq(m.from.tag)
	if m.cseq < *last {
		s.reply(m, 500, "") // RFC 3261 §12.2.2: out of order
		return
	}
	*last = m.cseq
	if l.symmetric {
		l.flow = m.flow // the phone's NAT may have given it a new port
	}
	if l.state == legEnding || l.state == legCanceling {
		l.requestWhileEnding(m)
		return
	}
	switch m.method {
	case "BYE":
		l.handleBye(m)
	case "INVITE":
		l.handleReinvite(m)
	case "INFO":
		l.handleInfo(m)
	case "REFER":
		l.handleRefer(m)
	case "NOTIFY":
		l.handleNotify(m)
	case "UPDATE":
		l.handleUpdate(m)
	case "MESSAGE":
		l.handleText(m)
	case "PRACK":
		l.handlePRACK(m)
	default: // OPTIONS
		s.answerOptions(m)
	}
}

// handleBye handles a BYE. A caller may send one before our answer too, a callee may not (RFC 3261 §15, §15.1.2).
func (l *Leg) handleBye(m *message) {
	s := l.shard
	if l.state == legRinging && !l.inbound {
		s.reply(m, 481, "")
		return
	}
	s.reply(m, 200, "")
	if l.state == legRinging {
		l.respondToInvite(487, "", "", nil)
	}
	q850, text := parseReason(m.get(fReason))
	l.terminate(Bye{Reason: text, Q850: q850})
}

// requestWhileEnding answers a request that crosses our BYE or CANCEL: 200 for a BYE, otherwise 481.
func (l *Leg) requestWhileEnding(m *message) {
	if m.method == "BYE" {
		l.shard.reply(m, 200, "")
		return
	}
	l.shard.reply(m, 481, "")
}

// parseReason parses a Reason field (RFC 3326).
func parseReason(s string) (q850 int, text string) {
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

// deferResponse creates the transaction of a request that the switch answers later. The returned function answers it
// once, on the shard.
func (l *Leg) deferResponse(m *message) func(status int, extra string) {
	s := l.shard
	tx := s.newServerTx(m, s.txKey(m, m.method))
	tx.setResponseDeadline(s)
	head := m.appendHead(nil, "")
	return func(status int, extra string) {
		s.buf = append(appendStatus(s.buf[:0], status, ""), head...)
		s.buf = appendBody(append(s.buf, extra...), "", nil)
		tx.respond(s, status, s.buf)
	}
}

func (l *Leg) handleInfo(m *message) {
	if l.state == legRinging {
		l.shard.reply(m, 481, "")
		return
	}
	respond := l.deferResponse(m)
	l.emit(Info{ContentType: m.get(fContentType), Body: []byte(m.body), Respond: func(status int) {
		l.enqueue(func() { respond(status, "") })
	}})
}
