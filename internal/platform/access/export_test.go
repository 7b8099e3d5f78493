package access

// CountOf returns the number of counts in a limiter.
func CountsForTest(l *Limiter) (n int) {
	for i := range l.parts {
		n += len(l.parts[i].counts)
	}
	return n
}
