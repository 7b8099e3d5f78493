package sip

import "time"

// Timers of transactions and dialogs.

// RFC 3261 §17.1.1.1, Table 4.
const (
	t1        = 500 * time.Millisecond
	t2        = 4 * time.Second
	t4        = 5 * time.Second
	txTimeout = 64 * t1 // timers B, F, H, J, L: how long to wait for the peer
)

// timer is one deadline of the struct that embeds it. It belongs to one shard.
type timer struct {
	at    time.Duration // since the server started
	index int           // in the heap, plus one; 0: not set
	owner timerOwner
}

// timerOwner is called when its timer is due.
type timerOwner interface{ expire(s *shard) }

// timers is a heap of deadlines, the earliest first.
type timers []*timer

// set arms or moves t.
func (h *timers) set(t *timer, at time.Duration) {
	t.at = at
	if t.index == 0 {
		*h = append(*h, t)
		t.index = len(*h)
		h.up(t.index - 1)
		return
	}
	h.down(t.index - 1)
	h.up(t.index - 1)
}

// stop disarms t. It does nothing if t is not set.
func (h *timers) stop(t *timer) {
	if t.index == 0 {
		return
	}
	i, last := t.index-1, len(*h)-1
	h.swap(i, last)
	(*h)[last] = nil
	*h = (*h)[:last]
	t.index = 0
	if i < last {
		h.down(i)
		h.up(i)
	}
}

// popDue removes and returns the earliest timer that is due at now, or nil.
func (h *timers) popDue(now time.Duration) *timer {
	if len(*h) == 0 || (*h)[0].at > now {
		return nil
	}
	t := (*h)[0]
	h.stop(t)
	return t
}

func (h timers) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i+1, j+1
}

func (h timers) up(i int) {
	for i > 0 && h[i].at < h[(i-1)/2].at {
		h.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (h timers) down(i int) {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(h); c++ {
			if h[c].at < h[least].at {
				least = c
			}
		}
		if least == i {
			return
		}
		h.swap(i, least)
		i = least
	}
}
