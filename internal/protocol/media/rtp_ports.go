package media

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
)

// portSet allocates even/odd port pairs (RFC 3550 §11) in random order. A port can therefore not be guessed from the
// previous one and is not reused at once. It is safe for concurrent use.
type portSet struct {
	first uint16 // even
	count int    // pairs

	mu   *sync.Mutex // guards used
	used []bool      // by pair
}

// newPortSet returns the pairs that lie completely in min..max. 0-0 is the range that kernels take ephemeral ports
// from; bind finds the free ones.
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

// bind calls listen for free pairs until one succeeds, and returns its even port.
func (p *portSet) bind(listen func(port uint16) error) (uint16, error) {
	// each try is random: other processes often hold a block of ports, which a linear search would cross port by port
	for range randomTries {
		if port, err := p.tryPair(rand.IntN(p.count), listen); port != 0 || err != nil {
			return port, err
		}
	}
	start := rand.IntN(p.count)
	for i := range p.count {
		if port, err := p.tryPair((start+i)%p.count, listen); port != 0 || err != nil {
			return port, err
		}
	}
	return 0, ErrNoPorts
}

// randomTries is how many pairs are tried at random before all are tried in order.
const randomTries = 64

// tryPair listens on a pair. It returns 0 if the pair is taken by this or another process.
func (p *portSet) tryPair(pair int, listen func(port uint16) error) (uint16, error) {
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
		return 0, fmt.Errorf("%w: %w", ErrNoPorts, err) // out of descriptors, or the address is not local
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
