package sip

// Outgoing INVITE: failover to the next address (RFC 3263 §4.3).

// failoverAfter is how long to wait for a next hop if there is another one: T1 doubled three times, so that four
// datagrams were lost.
const failoverAfter = 15 * t1 / 2

// shortenInviteTimeout shortens the timeout of an INVITE if there are further hops.
func (l *Leg) hurry() {
	if c, s := l.call, l.shard; len(c.more) > 0 {
		c.tx.end = min(c.tx.end, s.now+failoverAfter)
		s.timers.set(&c.tx.timer, min(c.tx.at, c.tx.end))
	}
}

// tryNextHop sends the INVITE to the next address of its target, unless a fork has already responded (RFC 3263
// §4.3). Cancel and the ring timeout stay in effect.
func (l *Leg) tryNext() bool {
	c, s := l.call, l.shard
	if c == nil || len(c.early) > 0 || len(c.more) == 0 {
		return false
	}
	s.srv.dead.note(c.flow.transport(), c.flow.addr, s.now)
	next := c.more[0]
	c.more = c.more[1:]
	c.tried++
	c.small = false
	c.flow = s.srv.hopFlow(next)
	l.flow = c.flow
	l.contact = s.srv.contact(contactUser(l.contact), c.flow)
	l.sendInvite()
	return true
}

// contactValueURI returns the URI of our Contact value.
func contactUser(contact string) string {
	a, _ := readAddress(contact)
	return a.uri
}
