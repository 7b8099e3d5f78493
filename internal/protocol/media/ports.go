package media

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
)

// portSet hands out even/odd port pairs (RFC 3550 §11) in random order, so that
// a port is not guessed from the last one and not reused at once.
type portSet struct {
	first uint16 // even
	count int    // pairs

	mu   *sync.Mutex // guards used
	used []bool      // by pair
}

// newPortSet covers the pairs that lie wholly in min..max. 0-0 is the range
// kernels take ephemeral ports from, which leaves finding free ones to binding.
func newPortSet(min, max int) (portSet, error) {
	if min == 0 && max == 0 {
		min, max = 32768, 60999
	}
	first := min + min%2
	count := (max - first + 1) / 2
	if min < 1 || max > 65535 || count < 1 {
		return portSet{}, fmt.Errorf("RTP ports %d-%d: want a range within 1-65535 that holds an even port and the one above", min, max)
	}
	return portSet{first: uint16(first), count: count, mu: new(sync.Mutex), used: make([]bool, count)}, nil
}

// bind tries free pairs with listen until one can be had, and returns its even port.
func (p *portSet) bind(listen func(port uint16) error) (uint16, error) {
	for range guesses { // each anew: what another process has taken is often a block, which a walk would cross port by port
		if port, err := p.try(rand.IntN(p.count), listen); port != 0 || err != nil {
			return port, err
		}
	}
	start := rand.IntN(p.count)
	for i := range p.count {
		if port, err := p.try((start+i)%p.count, listen); port != 0 || err != nil {
			return port, err
		}
	}
	return 0, ErrNoPorts
}

// guesses is how many ports are tried at random before all are tried in turn.
const guesses = 64

// try listens at a pair; 0 where that is taken, by us or by another process.
func (p *portSet) try(pair int, listen func(port uint16) error) (uint16, error) {
	if !p.take(pair) {
		return 0, nil
	}
	port := p.first + uint16(2*pair)
	err := listen(port)
	if err == nil {
		return port, nil
	}
	p.release(port)
	if !errors.Is(err, syscall.EADDRINUSE) && !errors.Is(err, syscall.EACCES) {
		return 0, fmt.Errorf("%w: %w", ErrNoPorts, err) // out of descriptors, address not ours
	}
	return 0, nil
}

func (p *portSet) take(pair int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.used[pair] {
		return false
	}
	p.used[pair] = true
	return true
}

func (p *portSet) release(port uint16) {
	p.mu.Lock()
	p.used[int(port-p.first)/2] = false
	p.mu.Unlock()
}
