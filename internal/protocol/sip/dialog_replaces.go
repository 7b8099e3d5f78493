package sip

import (
	"strings"

	"soniq/internal/protocol/sip/sipmsg"
)

// Replaces (RFC 3891).

// replacesID is a parsed Replaces value (RFC 3891 §6.1). The tags are from the point of view of the recipient.
type replacesID struct {
	callID, toTag, fromTag string
	earlyOnly              bool
}

func parseReplaces(value string) (d replacesID, ok bool) {
	id, params, _ := strings.Cut(value, ";")
	d.callID = strings.TrimSpace(id)
	params = ";" + params
	d.toTag, _ = sipmsg.ParamOf(params, "to-tag")
	d.fromTag, _ = sipmsg.ParamOf(params, "from-tag")
	_, d.earlyOnly = sipmsg.ParamOf(params, "early-only")
	return d, d.callID != "" && d.toTag != "" && d.fromTag != ""
}

// replacesInURI returns the Replaces value among the headers of a URI, unescaped (RFC 3891 §3).
func replacesInURI(query string) string {
	for query != "" {
		var h string
		h, query, _ = strings.Cut(query, "&")
		if name, value, _ := strings.Cut(h, "="); strings.EqualFold(name, "Replaces") {
			return sipmsg.Unescape(value)
		}
	}
	return ""
}

// findDialog returns the leg of a dialog, or nil. For calls to a phone, phones disagree on which tag is which, so
// both orders match.
func (s *shard) findDialog(d replacesID) *Leg {
	for _, tags := range [2][2]string{{d.toTag, d.fromTag}, {d.fromTag, d.toTag}} {
		if l := s.legs[s.dialogKey(d.callID, tags[0])]; l != nil && l.hasPeerTag(tags[1]) {
			return l
		}
	}
	return nil
}

// hasPeerTag reports whether a tag is the peer's, in an early dialog too.
func (l *Leg) hasPeerTag(tag string) bool {
	if l.remoteTag != "" || l.outgoingInvite == nil {
		return l.remoteTag == tag
	}
	return l.outgoingInvite.earlyDialogs[tag] != nil
}

// findDialogOnAnyShard looks up a dialog on its shard and then runs then on this one.
func (s *shard) findDialogOnAnyShard(d replacesID, then func(*Leg)) {
	home := s.srv.shardOf(d.callID)
	if home == s {
		then(s.findDialog(d))
		return
	}
	home.enqueue(func(h *shard) {
		l := h.findDialog(d)
		s.enqueue(func(*shard) { then(l) })
	})
}

// resolveReplaces resolves the Replaces header of a new call (RFC 3891 §3). A status above 0 is the refusal.
func (s *Server) resolveReplaces(in *Inbound) (leg *Leg, status int) {
	values := in.headerValues("Replaces")
	if len(values) == 0 {
		return nil, 0
	}
	d, ok := parseReplaces(values[0])
	if !ok || len(values) > 1 {
		return nil, 400
	}
	type found struct {
		leg    *Leg
		status int
	}
	result := make(chan found, 1)
	s.shardOf(d.callID).enqueue(func(h *shard) {
		l := h.findDialog(d)
		result <- found{l, l.replaceStatus(d.earlyOnly)}
	})
	select {
	case f := <-result:
		return f.leg, f.status
	case <-s.done:
		return nil, 503
	}
}

// replaceStatus returns 0 if a new call may replace the leg, otherwise the status of the refusal.
func (l *Leg) replaceStatus(earlyOnly bool) int {
	switch {
	case l == nil:
		return 481
	case l.ended.Load() || l.state == legCanceling || l.state == legEnding:
		return 603
	case l.state == legRinging && l.inbound:
		return 481 // an early dialog that this side did not start
	case l.state != legRinging && earlyOnly:
		return 486
	}
	return 0
}

// replacesForPeer returns the Replaces value that names this dialog to a third party, which sends it to the peer (RFC
// 3891 §6.1).
func (l *Leg) replacesForPeer() string {
	return l.callID + ";to-tag=" + l.remoteTag + ";from-tag=" + l.localTag
}
