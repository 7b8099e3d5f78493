package sip

import (
	"strconv"
	"strings"
)

// REFER received from the peer, and the NOTIFY requests about its progress (RFC 3515).

// handleRefer handles a REFER of the peer (RFC 3515 §2.4).
func (l *Leg) handleRefer(m *message) {
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
	u := &referSubscription{leg: l, event: "refer", noNotify: strings.EqualFold(m.get(fReferSub), "false")}
	if l.referCount > 1 {
		u.event += ";id=" + strconv.FormatUint(uint64(m.cseq), 10) // RFC 3515 §2.4.6
	}
	respond := l.deferResponse(m)
	e := Refer{
		Target: target, ReferredBy: m.get(fReferredBy), RawReplaces: replacesInURI(target.query),
		Respond: func(status int) { l.enqueue(func() { u.respond(status, respond) }) },
		Notify:  func(status int, reason string) { l.enqueue(func() { u.notify(status, reason) }) },
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
func readReferTo(m *message) (target URI, status int) {
	a, err := readAddress(m.get(fReferTo))
	if err != nil || countFields(m, fReferTo) != 1 {
		return target, 400 // RFC 3515 §2.4.2
	}
	if target, err = ParseURI(a.uri); err != nil {
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
	noNotify      bool   // RFC 4488: the referrer wants no NOTIFY
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
	u.nextStatus = string(appendStatus(nil, status, reason))
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
	u.leg.sendInDialog(o, func(_ *message, status int) {
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
