package access

// CountsForTest is how many counts a limiter keeps.
func CountsForTest(l *Limiter) (n int) {
	for i := range l.parts {
		n += len(l.parts[i].counts)
	}
	return n
}
