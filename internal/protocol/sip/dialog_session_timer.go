package sip

import (
	"strconv"
	"strings"
	"time"

	"soniq/internal/protocol/sip/sipmsg"
)

// Session timers (RFC 4028). Both sides negotiate how long the session lives without a refresh, and which side
// refreshes it.

const (
	defaultSessionExpires = 30 * time.Minute
	minSessionExpires     = 90 * time.Second // RFC 4028 §4: no smaller Min-SE
	maxSessionRaises      = 3
	refreshRetryPause     = 5 * time.Second // delay before a failed refresh is retried
)

// minSEField is the header line of a 422.
const minSEField = "Min-SE: 90\r\n"

// sessionTimer is the session timer of a dialog.
type sessionTimer struct {
	timer
	leg            *Leg
	interval       time.Duration // requested interval, later the negotiated one; 0: none
	minInterval    time.Duration // the largest Min-SE received
	weRefresh      bool          // this side refreshes
	running        bool
	refreshPending bool // our refresh is not answered
	raises         int  // how often a 422 raised the interval
	expiresAt      time.Duration
}

// init sets the interval that the server is configured to request.
func (x *sessionTimer) init(l *Leg) {
	x.leg, x.owner = l, x
	x.interval, x.minInterval = l.shard.srv.sessionExpires(), minSessionExpires
}

// sessionExpires returns the interval to request, or 0 if session timers are off.
func (s *Server) sessionExpires() time.Duration {
	switch d := s.config.SessionExpires; {
	case d < 0:
		return 0
	case d == 0:
		return defaultSessionExpires
	default:
		return max(d, minSessionExpires)
	}
}

// sessionGrant is the session timer that our answer grants.
type sessionGrant struct {
	interval      time.Duration // 0: none
	peerRefreshes bool          // the requesting side refreshes
	peerSupports  bool          // it supports session timers
}

// grantSession decides on the session timer that a request asks for (RFC 4028 §9). If tooBrief is true, the request
// must be refused with 422.
func (l *Leg) grantSession(m *received) (g sessionGrant, tooBrief bool) {
	asked, refresher := parseSessionExpires(m.Get(sipmsg.FieldSessionExpires))
	least, _ := parseSessionExpires(m.GetNamed("Min-SE"))
	g.peerSupports = m.HasOptionTag(sipmsg.FieldSupported, "timer") || m.HasOptionTag(sipmsg.FieldRequire, "timer")
	if asked > 0 && asked < minSessionExpires {
		if g.peerSupports {
			return g, true
		}
		asked = minSessionExpires
	}
	g.interval = l.shard.srv.sessionExpires()
	if asked > 0 && (asked < g.interval || g.interval == 0) {
		g.interval = asked
	}
	if g.interval > 0 {
		g.interval = max(g.interval, min(least, 24*time.Hour))
	}
	g.peerRefreshes = g.peerSupports && !strings.EqualFold(refresher, "uas")
	return g, false
}

// parseSessionExpires parses a Session-Expires or Min-SE value. It returns 0 if there is none.
func parseSessionExpires(value string) (d time.Duration, refresher string) {
	number, params, _ := strings.Cut(value, ";")
	n, err := strconv.ParseUint(strings.TrimSpace(number), 10, 31)
	if err != nil {
		return 0, ""
	}
	refresher, _ = sipmsg.ParamOf(";"+params, "refresher")
	return time.Duration(n) * time.Second, refresher
}

// headerFields returns the header lines of the 2xx that grants the timer.
func (g sessionGrant) headerFields() string {
	if g.interval == 0 {
		return ""
	}
	s := sessionExpiresField(g.interval)
	if g.peerRefreshes {
		s += ";refresher=uac\r\n"
	} else {
		s += ";refresher=uas\r\n"
	}
	if g.peerSupports {
		s += "Require: timer\r\n" // RFC 4028 §9
	}
	return s
}

func sessionExpiresField(d time.Duration) string {
	return "Session-Expires: " + strconv.FormatInt(int64(d/time.Second), 10)
}

// headerFields returns the header lines of our request. The first INVITE leaves the choice of the refresher to the
// peer (RFC 4028 §7.1); later ones keep it (§7.4).
func (x *sessionTimer) headerFields() string {
	if x.interval == 0 {
		return ""
	}
	s := sessionExpiresField(x.interval)
	switch {
	case x.running && x.weRefresh:
		s += ";refresher=uac"
	case x.running:
		s += ";refresher=uas"
	}
	s += "\r\n"
	if x.minInterval > minSessionExpires {
		s += "Min-SE: " + strconv.FormatInt(int64(x.minInterval/time.Second), 10) + "\r\n"
	}
	return s
}

// raiseInterval handles a 422: it raises the interval to the peer's Min-SE (RFC 4028 §7.3). It returns false if a
// retry is pointless.
func (x *sessionTimer) raiseInterval(m *received) bool {
	least, _ := parseSessionExpires(m.GetNamed("Min-SE"))
	if least <= x.interval || least > 24*time.Hour || x.interval == 0 || x.raises == maxSessionRaises {
		return false
	}
	x.raises++
	x.interval, x.minInterval = least, least
	return true
}

// startFromAnswer starts the timer granted in a 2xx to our request. If the peer does not support session timers, this
// side refreshes all the same: that is how a dead peer is noticed.
func (x *sessionTimer) startFromAnswer(m *received) {
	interval, refresher := parseSessionExpires(m.Get(sipmsg.FieldSessionExpires))
	ours := !strings.EqualFold(refresher, "uas")
	if interval == 0 {
		interval, ours = x.interval, true
	}
	x.start(min(interval, 24*time.Hour), ours)
}

// startFromGrant starts the timer that our answer granted.
func (x *sessionTimer) startFromGrant(g sessionGrant) {
	if g.interval > 0 {
		x.start(g.interval, !g.peerRefreshes)
	}
}

// start restarts the timer. The refresher's fires at half the interval; the other side's fires a third of the
// interval, at most 32 s, before its end (RFC 4028 §10).
func (x *sessionTimer) start(interval time.Duration, ours bool) {
	s := x.leg.shard
	if interval <= 0 || x.leg.state > legConfirmed {
		return
	}
	x.running, x.interval, x.weRefresh = true, max(interval, 10*time.Second), ours
	x.expiresAt = s.now + x.interval
	wait := x.interval - min(32*time.Second, x.interval/3)
	if ours {
		wait = x.interval / 2
	}
	s.timers.set(&x.timer, s.now+wait)
}

// stop ends the timer with the dialog.
func (x *sessionTimer) stop(s *shard) {
	s.timers.stop(&x.timer)
	x.running = false
}

func (x *sessionTimer) expire(s *shard) {
	l := x.leg
	switch {
	case !x.running || l.state > legConfirmed:
	case l.state != legConfirmed:
		s.timers.set(&x.timer, s.now+refreshRetryPause)
	case !x.weRefresh && l.refused: // its refresh may be what was refused: ask the peer itself
		l.refused, x.weRefresh = false, true
		s.timers.set(&x.timer, s.now)
	case !x.weRefresh || s.now >= x.expiresAt:
		l.endAsLost("session expired")
	case l.ownOfferPending() || l.pendingReinvite != nil || l.unacked != nil || x.refreshPending:
		s.timers.set(&x.timer, s.now+refreshRetryPause)
	default:
		l.refreshSession()
	}
}

// refreshSession refreshes the session: by UPDATE if the peer allows it, otherwise by a re-INVITE with our last SDP
// (RFC 4028 §7.4).
func (l *Leg) refreshSession() {
	x := &l.sessionTimer
	extra := l.shard.srv.capabilityFields() + x.headerFields()
	if !l.peerAllowsUpdate && l.localSDP == nil {
		x.start(x.interval, true) // no SDP to send in a re-INVITE
		return
	}
	x.refreshPending = true
	if l.peerAllowsUpdate {
		l.sendInDialog(requestTemplate{method: "UPDATE", extraFields: extra}, func(m *received, status int) {
			l.refreshDone("UPDATE", m, status)
		})
		return
	}
	o := requestTemplate{method: "INVITE", contentType: sipmsg.SDPType, body: l.localSDP, extraFields: extra}
	l.reinviteTx = l.sendInDialog(o, func(m *received, status int) {
		if status < 200 {
			return
		}
		l.reinviteTx = nil
		if m != nil && status < 300 {
			l.handleReinviteAnswer(m, false)
			if sdp := m.SDP(); l.notePeerSDP(sdp) {
				l.emit(Refreshed{SDP: []byte(sdp)})
			}
		}
		l.refreshDone("INVITE", m, status)
	})
}

// refreshDone handles the answer to a refresh. Any other answer shows that the peer is alive; only 408, 481 and a
// timeout end the session.
func (l *Leg) refreshDone(method string, m *received, status int) {
	x, s := &l.sessionTimer, l.shard
	if status < 200 {
		return
	}
	x.refreshPending = false
	switch {
	case l.state != legConfirmed:
	case m != nil && status < 300:
		l.updateTarget(m)
		l.learnAllow(m)
		x.startFromAnswer(m)
	case status == 408 || status == 481:
		l.endAsLost("session expired: " + method + " " + strconv.Itoa(status))
	case m == nil: // the connection is closed; it may be re-established
		s.timers.set(&x.timer, min(s.now+refreshRetryPause, x.expiresAt))
	case status == 422 && x.raiseInterval(m):
		s.timers.set(&x.timer, s.now)
	case method == "UPDATE" && (status == 405 || status == 501):
		l.peerAllowsUpdate = false
		s.timers.set(&x.timer, s.now)
	default:
		x.expiresAt = s.now + x.interval
		s.timers.set(&x.timer, s.now+refreshRetryPause)
		if status != 491 && status != 500 {
			s.timers.set(&x.timer, s.now+x.interval/2)
		}
	}
}
