package sip

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"soniq/internal/protocol/sip/sipmsg"
)

// REFER received from the peer and sent by this side, and the NOTIFY requests about the progress (RFC 3515).

// handleRefer handles a REFER of the peer (RFC 3515 §2.4).
func (l *Leg) handleRefer(m *received) {
	s := l.shard
	if l.state == legRinging {
		s.reply(m, 403, "") // no answered call to transfer
		return
	}
	target, status := readReferTo(m)
	if status != 0 {
		s.reply(m, status, "")
		return
	}
	l.referCount++
	u := &referSubscription{leg: l, event: "refer", noNotify: strings.EqualFold(m.Get(sipmsg.FieldReferSub), "false")}
	if l.referCount > 1 {
		u.event += ";id=" + strconv.FormatUint(uint64(m.CSeq), 10) // RFC 3515 §2.4.6
	}
	respond := l.deferResponse(m)
	e := Refer{
		Target: target, ReferredBy: m.Get(sipmsg.FieldReferredBy), RawReplaces: replacesInURI(target.Headers()),
		respond: func(status int) { l.enqueue(func() { u.respond(status, respond) }) },
		notify:  func(status int, reason string) { l.enqueue(func() { u.notify(status, reason) }) },
	}
	d, ok := parseReplaces(e.RawReplaces)
	if !ok {
		l.emit(e)
		return
	}
	s.findDialogOnAnyShard(d, func(named *Leg) {
		if named != nil && !named.ended.Load() {
			e.Replaces = named
		}
		l.emit(e)
	})
}

// readReferTo parses the single Refer-To of a REFER that asks for a call. status is the refusal, or 0 if the REFER is
// acceptable.
func readReferTo(m *received) (target sipmsg.URI, status int) {
	a, err := sipmsg.ReadAddress(m.Get(sipmsg.FieldReferTo))
	if err != nil || m.Count(sipmsg.FieldReferTo) != 1 {
		return target, 400 // RFC 3515 §2.4.2
	}
	if target, err = sipmsg.ParseURI(a.URI); err != nil {
		return target, 400
	}
	if method, ok := target.Param("method"); ok && !strings.EqualFold(method, "INVITE") {
		return target, 501
	}
	return target, 0
}

// referSubscription reports the progress of a transfer to the party that sent the REFER (RFC 3515 §2.4.4). One
// NOTIFY is in progress at a time, so that they arrive in order. A newer status replaces the one that waits.
type referSubscription struct {
	leg           *Leg
	event         string // of its NOTIFY requests
	noNotify      bool   // RFC 4488: the referrer asked for no NOTIFY
	started       bool
	ended         bool
	notifyPending bool
	nextStatus    string // status line of the next NOTIFY
}

// respond answers the REFER. A 2xx starts the subscription.
func (u *referSubscription) respond(status int, respond func(status int, extra string)) {
	extra := ""
	if status >= 200 && status < 300 {
		extra = "Contact: " + u.leg.contact + "\r\n"
		if u.noNotify {
			extra += "Refer-Sub: false\r\n" // RFC 4488 §4
		}
	}
	respond(status, extra)
	if u.started || u.noNotify || status < 200 || status > 299 {
		return
	}
	u.started = true
	u.leg.referSubscription = u
	u.notify(100, "")
}

// notify queues a status. A final one ends the subscription.
func (u *referSubscription) notify(status int, reason string) {
	if !u.started || u.ended || status < 100 || status > 699 {
		return
	}
	u.ended = status >= 200
	u.nextStatus = string(sipmsg.AppendStatus(nil, status, reason))
	u.sendNext()
}

// sendNext sends the waiting status, unless a NOTIFY is in progress.
func (u *referSubscription) sendNext() {
	if u.notifyPending || u.nextStatus == "" || u.leg.state != legConfirmed && u.leg.state != legAnswered {
		return
	}
	u.send()
}

func (u *referSubscription) send() {
	state := "active;expires=300"
	if u.ended {
		state = "terminated;reason=noresource"
	}
	o := requestTemplate{
		method: "NOTIFY", contentType: sipfragType, body: []byte(u.nextStatus),
		extraFields: "Event: " + u.event + "\r\nSubscription-State: " + state + "\r\n",
	}
	u.notifyPending, u.nextStatus = true, ""
	u.leg.sendInDialog(o, func(_ *received, status int) {
		if status < 200 {
			return
		}
		u.notifyPending = false
		if status > 299 {
			u.ended, u.nextStatus = true, "" // RFC 6665 §4.2.2: only the subscription ends, not the call
		}
		u.sendNext()
	})
}

// flush sends the waiting status before our BYE leaves.
func (u *referSubscription) flush() {
	if u != nil && u.nextStatus != "" {
		u.send()
	}
}

const sipfragType = "message/sipfrag;version=2.0" // RFC 3420

// TransferRequest holds the parameters of Leg.Refer.
type TransferRequest struct {
	Target     string // URI that the peer is to call
	Replaces   *Leg   // our dialog with the target that the peer's call replaces; nil for none
	ReferredBy string // Referred-By value; empty: no such field
	NoNotify   bool   // RFC 4488: request no NOTIFY
}

var errTransferTarget = errors.New("sip: malformed transfer target")

// Refer asks the peer to place a call (RFC 3515) and returns once the peer has accepted. progress receives each
// status of that call, on the shard's goroutine as events are, the last one 200 or above. It may be nil. A refusal is
// a *StatusError.
func (l *Leg) Refer(ctx context.Context, t TransferRequest, progress func(status int, reason string)) error {
	if _, err := sipmsg.ParseURI(t.Target); err != nil || strings.IndexFunc(t.ReferredBy, sipmsg.IsControl) >= 0 {
		return errTransferTarget
	}
	target := t.Target
	if t.Replaces != nil {
		name, err := t.Replaces.runAndWait(ctx, func(done func(*received, error)) {
			done(&received{Message: sipmsg.Message{Body: t.Replaces.replacesForPeer()}}, nil)
		})
		if err != nil {
			return err
		}
		target += "?Replaces=" + escapeHeader(string(name))
	}
	extra := "Refer-To: <" + target + ">\r\n"
	if t.ReferredBy != "" {
		extra += "Referred-By: " + t.ReferredBy + "\r\n"
	}
	if t.NoNotify {
		extra += "Refer-Sub: false\r\nSupported: norefersub\r\n"
	}
	_, err := l.runAndWait(ctx, func(done func(*received, error)) { l.sendRefer(extra, progress, done) })
	return err
}

func (l *Leg) sendRefer(extra string, progress func(int, string), done func(*received, error)) {
	if l.state != legConfirmed {
		done(nil, ErrLegEnded)
		return
	}
	if progress == nil {
		progress = func(int, string) {}
	}
	l.onTransferProgress = progress // a NOTIFY may overtake the 202
	l.sendInDialog(requestTemplate{method: "REFER", extraFields: extra}, l.resultHandler("REFER", func(m *received, err error) {
		if err != nil {
			l.onTransferProgress = nil
		}
		done(m, err)
	}))
}

// handleNotify handles a NOTIFY inside the dialog. Only those of our own REFER are accepted.
func (l *Leg) handleNotify(m *received) {
	s := l.shard
	event, _, _ := strings.Cut(m.Get(sipmsg.FieldEvent), ";")
	if !strings.EqualFold(strings.TrimSpace(event), "refer") {
		s.reply(m, 489, "Allow-Events: refer\r\n")
		return
	}
	if l.onTransferProgress == nil {
		s.reply(m, 481, "")
		return
	}
	progress := l.onTransferProgress
	state, _, _ := strings.Cut(m.GetNamed("Subscription-State"), ";")
	if strings.EqualFold(strings.TrimSpace(state), "terminated") {
		l.onTransferProgress = nil
	}
	s.reply(m, 200, "")
	if status, reason, ok := parseSipfrag(m.Body); ok {
		s.runRecovered(func() { progress(status, reason) })
	}
}

// parseSipfrag parses the status line of a message/sipfrag body (RFC 3420).
func parseSipfrag(body string) (status int, reason string, ok bool) {
	line, _, _ := sipmsg.CutLine(body)
	version, rest, _ := strings.Cut(line, " ")
	code, reason, _ := strings.Cut(rest, " ")
	status, err := strconv.Atoi(strings.TrimSpace(code))
	return status, strings.TrimSpace(reason), err == nil && strings.EqualFold(version, "SIP/2.0") && status >= 100 && status <= 699
}

// escapeHeader escapes a header value for use in a URI (RFC 3261 §25.1).
func escapeHeader(s string) string {
	const hex = "0123456789ABCDEF"
	var b []byte
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte("-_.!~*'()", c) >= 0 {
			b = append(b, c)
			continue
		}
		b = append(b, '%', hex[c>>4], hex[c&15])
	}
	return string(b)
}
