package sip

import "strings"

// dialogName is a Replaces value taken apart (RFC 3891 §6.1). The tags are
// from the point of view of who is told it.
type dialogName struct {
	callID, toTag, fromTag string
	earlyOnly              bool
}

func readReplaces(value string) (d dialogName, ok bool) {
	id, params, _ := strings.Cut(value, ";")
	d.callID = strings.TrimSpace(id)
	params = ";" + params
	d.toTag, _ = paramOf(params, "to-tag")
	d.fromTag, _ = paramOf(params, "from-tag")
	_, d.earlyOnly = paramOf(params, "early-only")
	return d, d.callID != "" && d.toTag != "" && d.fromTag != ""
}

// replaces finds the Replaces header in a URI's headers (RFC 3891 §3).
func replaces(query string) string {
	for query != "" {
		var h string
		h, query, _ = strings.Cut(query, "&")
		if name, value, _ := strings.Cut(h, "="); strings.EqualFold(name, "Replaces") {
			return unescape(value)
		}
	}
	return ""
}

// named is the leg of a dialog, nil when there is none. Phones do not agree
// on whose tag is whose when they were called, so both orders count.
func (s *shard) named(d dialogName) *Leg {
	for _, tags := range [2][2]string{{d.toTag, d.fromTag}, {d.fromTag, d.toTag}} {
		if l := s.legs[s.dialogKey(d.callID, tags[0])]; l != nil && l.hasPeer(tags[1]) {
			return l
		}
	}
	return nil
}

// hasPeer tells whether a tag is the other side's, of an early dialog too.
func (l *Leg) hasPeer(tag string) bool {
	if l.remoteTag != "" || l.call == nil {
		return l.remoteTag == tag
	}
	return l.call.early[tag] != nil
}

// find looks for a dialog on whatever shard it lives, and goes on here.
func (s *shard) find(d dialogName, then func(*Leg)) {
	home := s.srv.shardOf(d.callID)
	if home == s {
		then(s.named(d))
		return
	}
	home.post(func(h *shard) {
		l := h.named(d)
		s.post(func(*shard) { then(l) })
	})
}

// replaced resolves the Replaces header of a new call (RFC 3891 §3). A status
// above 0 is the refusal.
func (s *Server) replaced(in *Inbound) (leg *Leg, status int) {
	values := in.values("Replaces")
	if len(values) == 0 {
		return nil, 0
	}
	d, ok := readReplaces(values[0])
	if !ok || len(values) > 1 {
		return nil, 400
	}
	type found struct {
		leg    *Leg
		status int
	}
	result := make(chan found, 1)
	s.shardOf(d.callID).post(func(h *shard) {
		l := h.named(d)
		result <- found{l, l.replaceable(d.earlyOnly)}
	})
	select {
	case f := <-result:
		return f.leg, f.status
	case <-s.done:
		return nil, 503
	}
}

// replaceable is 0 when a new call may take the leg's place.
func (l *Leg) replaceable(earlyOnly bool) int {
	switch {
	case l == nil:
		return 481
	case l.over.Load() || l.state == legCanceling || l.state == legEnding:
		return 603
	case l.state == legRinging && l.inbound:
		return 481 // an early dialog that we did not start
	case l.state != legRinging && earlyOnly:
		return 486
	}
	return 0
}

// naming is the Replaces value that names this dialog to a third party, which
// brings it to the other side (RFC 3891 §6.1).
func (l *Leg) naming() string {
	return l.callID + ";to-tag=" + l.remoteTag + ";from-tag=" + l.localTag
}
