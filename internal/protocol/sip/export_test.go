package sip

// ReplacesOf returns the Replaces value of a leg as the peer would send it.
func ReplacesOf(l *Leg) string {
	name := make(chan string, 1)
	l.enqueue(func() { name <- l.callID + ";to-tag=" + l.localTag + ";from-tag=" + l.remoteTag })
	return <-name
}
