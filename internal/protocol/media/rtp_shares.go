package media

import (
	"errors"
	"fmt"
	"net/netip"
)

// ErrShare is returned for a new call of a party that uses its share of the streams.
var ErrShare = errors.New("the share of RTP ports is used up")

// Use says what a stream is for. It decides which streams are kept back from it.
type Use uint8

// The uses of streams.
const (
	AnyUse    Use = iota // no limit but the ports
	NewCall              // of a call that begins: leaves the streams kept back, and the shares of other parties
	Continued            // of a call in progress: leaves the streams kept back for emergency calls
	Emergency            // of an emergency call: takes any stream
)

// Claim says for whom a stream is opened, and for what. The zero Claim has no limit.
type Claim struct {
	Owner string // party whose streams are counted together
	Use   Use
	Alone bool // there is no other party: only the streams kept back are refused
}

// Shares divides the streams between parties. The zero value keeps nothing back and limits nobody.
type Shares struct {
	// Percent is the share of the streams that one party can use by itself; 0 and 100 are no limit. Below that, a party
	// may have Percent/(100-Percent) times as many streams as are free. Each further party therefore finds free ones.
	Percent int
	// Continued is the number of streams that new calls leave for calls in progress and emergency calls.
	Continued int
	// Emergency is the number of streams that only emergency calls use. They are open in advance, so that they need
	// neither a port nor a descriptor.
	Emergency int
	// Streams is the number of streams that the descriptors of the process allow; 0: as many as there are ports.
	Streams int
}

// DefaultShares returns the shares of an engine with pairs of ports and a number of descriptors. Small engines keep
// back less.
func DefaultShares(percent, pairs, descriptors int) Shares {
	streams := min(pairs, max(descriptors-descriptors/8-reservedDescriptors, 8)/2)
	return Shares{Percent: percent, Streams: streams, Emergency: min(emergencyStreams, streams/16),
		Continued: min(continuedStreams, streams/8)}
}

const (
	reservedDescriptors = 64 // of the database, the log and listening sockets
	emergencyStreams    = 8
	continuedStreams    = 64
)

// Opener opens streams under a claim.
type Opener struct {
	engine *Engine
	claim  Claim
}

// For returns an opener of streams under a claim.
func (e *Engine) For(c Claim) Opener { return Opener{e, c} }

// Open is Engine.Open under the claim. The error wraps ErrNoPorts, or it is ErrShare.
func (o Opener) Open() (*Stream, error) {
	return o.engine.open(o.claim, o.engine.loops.pick(), o.engine.cfg.Bind, o.engine.cfg.Advertise)
}

// OpenPeer is Engine.OpenPeer under the claim.
func (o Opener) OpenPeer(s *Stream) (*Stream, error) {
	return o.engine.open(o.claim, s.loop, s.bind, s.local.Addr())
}

// OpenOn is Engine.OpenOn under the claim.
func (o Opener) OpenOn(bind, advertise netip.Addr) (*Stream, error) {
	if !advertise.IsValid() {
		advertise = advertisedAddr(bind)
	}
	return o.engine.open(o.claim, o.engine.loops.pick(), bind, advertise)
}

// enter counts a stream under a claim, or refuses it.
func (e *Engine) enter(c Claim) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.refusal(c); err != nil {
		return err
	}
	e.entered++
	e.owned[c.Owner]++
	return nil
}

// leave ends the count of a stream.
func (e *Engine) leave(owner string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.entered--
	if e.owned[owner]--; e.owned[owner] == 0 {
		delete(e.owned, owner)
	}
}

func (e *Engine) refusal(c Claim) error {
	s := &e.cfg.Shares
	free := e.capacity - e.entered
	if c.Use == NewCall {
		free -= s.Continued
	}
	switch {
	case c.Use == AnyUse || c.Use == Emergency:
		return nil
	case free < 1:
		return fmt.Errorf("%w: the others are kept back", ErrNoPorts)
	case c.Use == NewCall && !c.Alone && s.Percent > 0 && e.owned[c.Owner]*(100-s.Percent) >= free*s.Percent:
		return ErrShare
	}
	return nil
}

// setCapacity determines the number of streams for all but emergency calls.
func (e *Engine) setCapacity() {
	e.capacity = e.ports.count
	if n := e.cfg.Shares.Streams; n > 0 {
		e.capacity = min(e.capacity, n)
	}
	e.capacity -= e.cfg.Shares.Emergency
	e.owned = map[string]int{}
}
