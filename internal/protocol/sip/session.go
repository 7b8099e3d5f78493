package sip

import (
	"strconv"
	"strings"
	"time"
)

// Session timers (RFC 4028). Both sides negotiate how long the session lives without a refresh, and which side
// refreshes it.

const (
	defaultSession = 30 * time.Minute
	leastSession   = 90 * time.Second // RFC 4028 §4: no smaller Min-SE
	maxRaised      = 3
	refreshPause   = 5 * time.Second // delay before a failed refresh is retried
)

// minSEField is the header line of a 422.
const minSE = "Min-SE: 90\r\n"

// sessionTimer is the session timer of a dialog.
type session struct {
	timer
	leg      *Leg
	interval time.Duration // requested interval, later the negotiated one; 0: none
	least    time.Duration // the largest Min-SE received
	ours     bool          // this side refreshes
	running  bool
	asking   bool // our refresh is not answered
	raised   int  // how often a 422 raised the interval
	end      time.Duration
}

// init sets the interval that the server is configured to request.
func (x *session) init(l *Leg) {
	x.leg, x.owner = l, x
	x.interval, x.least = l.shard.srv.sessionExpires(), leastSession
}

// sessionExpires returns the interval to request, or 0 if session timers are off.
func (s *Server) sessionExpires() time.Duration {
	switch d := s.config.SessionExpires; {
	case d < 0:
		return 0
	case d == 0:
		return defaultSession
	default:
		return max(d, leastSession)
	}
}

// sessionGrant is the session timer that our answer grants.
type grant struct {
	interval time.Duration // 0: none
	theirs   bool          // the requesting side refreshes
	known    bool          // it supports session timers
}

// grantSession decides on the session timer that a request asks for (RFC 4028 §9). If tooBrief is true, the request
// must be refused with 422.
func (l *Leg) grant(m *message) (g grant, tooBrief bool) {
	asked, refresher := readExpires(m.get(fSessionExpires))
	least, _ := readExpires(m.named("Min-SE"))
	g.known = m.tagged(fSupported, "timer") || m.tagged(fRequire, "timer")
	if asked > 0 && asked < leastSession {
		if g.known {
			return g, true
		}
		asked = leastSession
	}
	g.interval = l.shard.srv.sessionExpires()
	if asked > 0 && (asked < g.interval || g.interval == 0) {
		g.interval = asked
	}
	if g.interval > 0 {
		g.interval = max(g.interval, min(least, 24*time.Hour))
	}
	g.theirs = g.known && !strings.EqualFold(refresher, "uas")
	return g, false
}

// parseSessionExpires parses a Session-Expires or Min-SE value. It returns 0 if there is none.
func readExpires(value string) (d time.Duration, refresher string) {
	number, params, _ := strings.Cut(value, ";")
	n, err := strconv.ParseUint(strings.TrimSpace(number), 10, 31)
	if err != nil {
		return 0, ""
	}
	refresher, _ = paramOf(";"+params, "refresher")
	return time.Duration(n) * time.Second, refresher
}

// headerFields returns the header lines of the 2xx that grants the timer.
func (g grant) fields() string {
	if g.interval == 0 {
		return ""
	}
	s := expiresField(g.interval)
	if g.theirs {
		s += ";refresher=uac\r\n"
	} else {
		s += ";refresher=uas\r\n"
	}
	if g.known {
		s += "Require: timer\r\n" // RFC 4028 §9
	}
	return s
}

func expiresField(d time.Duration) string {
	return "Session-Expires: " + strconv.FormatInt(int64(d/time.Second), 10)
}

// headerFields returns the header lines of our request. The first INVITE leaves the choice of the refresher to the
// peer (RFC 4028 §7.1); later ones keep it (§7.4).
func (x *session) fields() string {
	if x.interval == 0 {
		return ""
	}
	s := expiresField(x.interval)
	switch {
	case x.running && x.ours:
		s += ";refresher=uac"
	case x.running:
		s += ";refresher=uas"
	}
	s += "\r\n"
	if x.least > leastSession {
		s += "Min-SE: " + strconv.FormatInt(int64(x.least/time.Second), 10) + "\r\n"
	}
	return s
}

// raiseInterval handles a 422: it raises the interval to the peer's Min-SE (RFC 4028 §7.3). It returns false if a
// retry is pointless.
func (x *session) raise(m *message) bool {
	least, _ := readExpires(m.named("Min-SE"))
	if least <= x.interval || least > 24*time.Hour || x.interval == 0 || x.raised == maxRaised {
		return false
	}
	x.raised++
	x.interval, x.least = least, least
	return true
}

// startFromAnswer starts the timer granted in a 2xx to our request. If the peer does not support session timers, this
// side refreshes all the same: that is how a dead peer is noticed.
func (x *session) granted(m *message) {
	interval, refresher := readExpires(m.get(fSessionExpires))
	ours := !strings.EqualFold(refresher, "uas")
	if interval == 0 {
		interval, ours = x.interval, true
	}
	x.start(min(interval, 24*time.Hour), ours)
}

// startFromGrant starts the timer that our answer granted.
func (x *session) begin(g grant) {
	if g.interval > 0 {
		x.start(g.interval, !g.theirs)
	}
}

// start restarts the timer. The refresher's fires at half the interval; the other side's fires a third of the
// interval, at most 32 s, before its end (RFC 4028 §10).
func (x *session) start(interval time.Duration, ours bool) {
	s := x.leg.shard
	if interval <= 0 || x.leg.state > legConfirmed {
		return
	}
	x.running, x.interval, x.ours = true, max(interval, 10*time.Second), ours
	x.end = s.now + x.interval
	wait := x.interval - min(32*time.Second, x.interval/3)
	if ours {
		wait = x.interval / 2
	}
	s.timers.set(&x.timer, s.now+wait)
}

// stop ends the timer with the dialog.
func (x *session) stop(s *shard) {
	s.timers.stop(&x.timer)
	x.running = false
}

func (x *session) expire(s *shard) {
	l := x.leg
	switch {
	case !x.running || l.state > legConfirmed:
	case l.state != legConfirmed:
		s.timers.set(&x.timer, s.now+refreshPause)
	case !x.ours || s.now >= x.end:
		l.lose("session expired")
	case l.offering() || l.offered != nil || l.unacked != nil || x.asking:
		s.timers.set(&x.timer, s.now+refreshPause)
	default:
		l.refresh()
	}
}

// refreshSession refreshes the session: by UPDATE if the peer allows it, otherwise by a re-INVITE with our last SDP
// (RFC 4028 §7.4).
func (l *Leg) refresh() {
	x := &l.session
	extra := l.shard.srv.able() + x.fields()
	if !l.updates && l.sdp == nil {
		x.start(x.interval, true) // no SDP to send in a re-INVITE
		return
	}
	x.asking = true
	if l.updates {
		l.transact(outline{method: "UPDATE", extra: extra}, func(m *message, status int) { l.refreshDone("UPDATE", m, status) })
		return
	}
	l.reinvite = l.transact(outline{method: "INVITE", contentType: sdpType, body: l.sdp, extra: extra}, func(m *message, status int) {
		if status < 200 {
			return
		}
		l.reinvite = nil
		if m != nil && status < 300 {
			l.reanswered(m, false)
			if l.hear(m.body) {
				l.emit(Refreshed{SDP: []byte(m.body)})
			}
		}
		l.refreshDone("INVITE", m, status)
	})
}

// refreshDone handles the answer to a refresh. Any other answer shows that the peer is alive; only 408, 481 and a
// timeout end the session.
func (l *Leg) refreshDone(method string, m *message, status int) {
	x, s := &l.session, l.shard
	if status < 200 {
		return
	}
	x.asking = false
	switch {
	case l.state != legConfirmed:
	case m != nil && status < 300:
		l.retarget(m)
		l.learn(m)
		x.granted(m)
	case status == 408 || status == 481:
		l.lose("session expired: " + method + " " + strconv.Itoa(status))
	case m == nil: // the connection is closed; it may be re-established
		s.timers.set(&x.timer, min(s.now+refreshPause, x.end))
	case status == 422 && x.raise(m):
		s.timers.set(&x.timer, s.now)
	case method == "UPDATE" && (status == 405 || status == 501):
		l.updates = false
		s.timers.set(&x.timer, s.now)
	default:
		x.end = s.now + x.interval
		s.timers.set(&x.timer, s.now+refreshPause)
		if status != 491 && status != 500 {
			s.timers.set(&x.timer, s.now+x.interval/2)
		}
	}
}
