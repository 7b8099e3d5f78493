package media

// gaps counts losses in a row. A gap is settled when the next one begins, for
// packets that were only overtaken may still fill it.
type gaps struct {
	from, to uint32 // extended numbers missing, to excluded
	missing  int64

	bursts  int64
	lost    int64 // in them
	longest int64
}

// open notes that the numbers from..to-1 are missing so far.
func (g *gaps) open(from, to uint32) {
	g.settle()
	g.from, g.to, g.missing = from, to, int64(to-from)
}

// fill notes a packet that came late.
func (g *gaps) fill(number uint32) {
	if g.missing > 0 && number-g.from < g.to-g.from {
		g.missing--
	}
}

func (g *gaps) settle() {
	if g.missing > 0 {
		g.bursts++
		g.lost += g.missing
		g.longest = max(g.longest, g.missing)
	}
	g.missing = 0
}

// settled is g as if no more packets came late.
func (g gaps) settled() gaps {
	g.settle()
	return g
}
