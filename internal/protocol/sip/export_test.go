package sip

// NameOf is the Replaces value that names a leg of ours when the other side
// is told it.
func NameOf(l *Leg) string {
	name := make(chan string, 1)
	l.post(func() { name <- l.callID + ";to-tag=" + l.localTag + ";from-tag=" + l.remoteTag })
	return <-name
}

// Redacted is a message as traces show it.
func Redacted(raw string) string { return redacted(raw) }
