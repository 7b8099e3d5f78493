package sip

// Outgoing INVITE: failover to the next address (RFC 3263 §4.3).

// failoverAfter is how long to wait for a next hop if there is another one: T1 doubled three times, so that four
// datagrams were lost.
const failoverAfter = 15 * t1 / 2

// shortenInviteTimeout shortens the timeout of an INVITE if there are further hops.
func (l *Leg) shortenInviteTimeout() {
	if c, s := l.outgoingInvite, l.shard; len(c.moreHops) > 0 {
		c.tx.deadline = min(c.tx.deadline, s.now+failoverAfter)
		s.timers.set(&c.tx.timer, min(c.tx.at, c.tx.deadline))
	}
}

// tryNextHop sends the INVITE to the next address of its target, unless a fork has already responded (RFC 3263
// §4.3). Cancel and the ring timeout stay in effect.
func (l *Leg) tryNextHop() bool {
	c, s := l.outgoingInvite, l.shard
	if c == nil || len(c.earlyDialogs) > 0 || len(c.moreHops) == 0 {
		return false
	}
	s.srv.failedTargets.markFailed(c.flow.transport(), c.flow.addr, s.now)
	next := c.moreHops[0]
	c.moreHops = c.moreHops[1:]
	c.failedHops++
	c.noTCP = false
	c.flow = s.srv.flowToHop(next)
	l.flow = c.flow
	l.contact = s.srv.contactValue(contactValueURI(l.contact), c.flow)
	l.sendInvite()
	return true
}

// contactValueURI returns the URI of our Contact value.
func contactValueURI(contact string) string {
	a, _ := readAddress(contact)
	return a.uri
}
