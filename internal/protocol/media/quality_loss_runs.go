package media

// lossRuns counts runs of consecutive lost packets. A run is final only when the next one begins, because reordered
// packets may still fill it.
type lossRuns struct {
	from, to uint32 // range of missing extended sequence numbers; to is exclusive
	missing  int64

	bursts  int64
	lost    int64 // in all runs
	longest int64
}

// start records that the sequence numbers from..to-1 are missing so far.
func (g *lossRuns) start(from, to uint32) {
	g.finish()
	g.from, g.to, g.missing = from, to, int64(to-from)
}

// fillLate records a packet that arrived late.
func (g *lossRuns) fillLate(number uint32) {
	if g.missing > 0 && number-g.from < g.to-g.from {
		g.missing--
	}
}

func (g *lossRuns) finish() {
	if g.missing > 0 {
		g.bursts++
		g.lost += g.missing
		g.longest = max(g.longest, g.missing)
	}
	g.missing = 0
}

// finished returns a copy of g as if no more packets arrived late.
func (g lossRuns) finished() lossRuns {
	g.finish()
	return g
}
