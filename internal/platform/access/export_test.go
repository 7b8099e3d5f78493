package access

// CountOf returns the number of counts in a limiter.
func CountOf(l *Limiter) (n int) {
	for i := range l.shards {
		n += len(l.shards[i].counts)
	}
	return n
}
