package sip

import (
	"context"
	"errors"
	"strconv"
	"strings"
)

// REFER sent by this side, and the NOTIFY requests received for it (RFC 3515).

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
	if _, err := ParseURI(t.Target); err != nil || strings.IndexFunc(t.ReferredBy, isControl) >= 0 {
		return errTransferTarget
	}
	target := t.Target
	if t.Replaces != nil {
		name, err := t.Replaces.runAndWait(ctx, func(done func(*message, error)) {
			done(&message{body: t.Replaces.replacesForPeer()}, nil)
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
	_, err := l.runAndWait(ctx, func(done func(*message, error)) { l.sendRefer(extra, progress, done) })
	return err
}

func (l *Leg) sendRefer(extra string, progress func(int, string), done func(*message, error)) {
	if l.state != legConfirmed {
		done(nil, ErrLegEnded)
		return
	}
	if progress == nil {
		progress = func(int, string) {}
	}
	l.onTransferProgress = progress // a NOTIFY may overtake the 202
	l.sendInDialog(requestTemplate{method: "REFER", extraFields: extra}, l.resultHandler("REFER", func(m *message, err error) {
		if err != nil {
			l.onTransferProgress = nil
		}
		done(m, err)
	}))
}

// handleNotify handles a NOTIFY inside the dialog. Only those of our own REFER are accepted.
func (l *Leg) handleNotify(m *message) {
	s := l.shard
	event, _, _ := strings.Cut(m.getNamed("Event"), ";")
	if !strings.EqualFold(strings.TrimSpace(event), "refer") {
		s.reply(m, 489, "Allow-Events: refer\r\n")
		return
	}
	if l.onTransferProgress == nil {
		s.reply(m, 481, "")
		return
	}
	progress := l.onTransferProgress
	state, _, _ := strings.Cut(m.getNamed("Subscription-State"), ";")
	if strings.EqualFold(strings.TrimSpace(state), "terminated") {
		l.onTransferProgress = nil
	}
	s.reply(m, 200, "")
	if status, reason, ok := parseSipfrag(m.body); ok {
		s.runRecovered(func() { progress(status, reason) })
	}
}

// parseSipfrag parses the status line of a message/sipfrag body (RFC 3420).
func parseSipfrag(body string) (status int, reason string, ok bool) {
	line, _, _ := cutLine(body)
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
