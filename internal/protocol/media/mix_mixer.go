package media

import (
	"slices"
	"sync"
	"time"

	"soniq/internal/protocol/media/dsp"
	"soniq/internal/protocol/media/rtp"
)

// mixRate is the sample rate of mixing in Hz.
const mixRate = 16000

// A Mixer sends legs the sums of other legs, whatever their codecs. It serves conferences, whispering, listening in,
// and two legs without a common codec. A clock of 20 ms runs while it has members. All methods are safe for
// concurrent use.
type Mixer struct {
	engine *Engine

	mu      sync.Mutex // guards the fields below; held during each tick
	closed  bool
	members []*mixerMember
	running chan struct{} // closed when the clock has stopped; nil if it never ran
	wake    chan struct{}
	sum     [mixRate / 50]int32
	out     [mixRate / 50]int16
}

// mixerMember is one leg of a mixer.
type mixerMember struct {
	stream  *Stream
	jitter  *rtp.JitterBuffer   // audio from the leg; nil if no member hears it
	frame   [mixRate / 50]int16 // its audio in this tick
	talking bool                // it has audio in this tick
	sources []*mixerMember      // members whose sum is sent to it; nil: nothing is sent to it
	listens bool
}

// NewMixer returns a mixer without members.
func (e *Engine) NewMixer() (*Mixer, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, ErrClosed
	}
	m := &Mixer{engine: e, wake: make(chan struct{}, 1)}
	e.mixers[m] = struct{}{}
	return m, nil
}

// Set defines from now on which legs hear which: each key hears the sum of its values. A key with no values hears
// silence. A value that is not a key is heard, and this mixer sends nothing to it. Streams that are not mentioned
// leave the mixer. Set removes the mentioned streams from their bridges and other mixers and opens their latch
// windows. On a closed mixer it does nothing.
func (m *Mixer) Set(hears map[*Stream][]*Stream) {
	m.engine.bridgeMu.Lock()
	defer m.engine.bridgeMu.Unlock()
	m.set(hears, true)
}

// Close removes all members and stops the clock. It may be called twice.
func (m *Mixer) Close() {
	m.engine.bridgeMu.Lock()
	m.set(nil, true)
	m.mu.Lock()
	m.closed = true
	running := m.running
	m.mu.Unlock()
	m.engine.bridgeMu.Unlock()
	if running != nil {
		<-running
	}
	m.engine.mu.Lock()
	delete(m.engine.mixers, m)
	m.engine.mu.Unlock()
}

// set is Set; if take is true, it first removes the streams from their bridges and other mixers. The caller holds the
// engine's bridging lock.
func (m *Mixer) set(hears map[*Stream][]*Stream, take bool) {
	plan := m.buildMembers(hears)
	if plan == nil {
		return
	}
	if take {
		for _, p := range plan {
			if p.stream.mixer != m {
				p.stream.leaveBridge()
				p.stream.mixer = m
				p.stream.openLatchWindow()
			}
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, old := range m.members {
		old.detach(m, plan)
	}
	for _, p := range plan {
		p.attach()
	}
	m.members = plan
	if len(plan) > 0 && !m.clockRunning() {
		running := make(chan struct{})
		m.running = running
		m.engine.mixerClocks.Go(func() { m.run(running) })
	}
	wakeUp(m.wake)
}

// buildMembers returns the members for Set. It keeps the jitter buffers that are running. It returns nil if the mixer
// is closed.
func (m *Mixer) buildMembers(hears map[*Stream][]*Stream) []*mixerMember {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	was, is := map[*Stream]*mixerMember{}, map[*Stream]*mixerMember{}
	for _, o := range m.members {
		was[o.stream] = o
	}
	plan := []*mixerMember{}
	get := func(s *Stream) *mixerMember {
		if is[s] == nil {
			is[s] = &mixerMember{stream: s}
			plan = append(plan, is[s])
		}
		return is[s]
	}
	for s, talkers := range hears {
		p := get(s)
		p.listens = true
		for _, t := range talkers {
			if t == s {
				continue
			}
			q := get(t)
			if o := was[t]; q.jitter == nil && o != nil {
				q.jitter = o.jitter
			}
			if q.jitter == nil {
				q.jitter = rtp.NewJitterBuffer(mixRate)
			}
			p.sources = append(p.sources, q)
		}
	}
	return plan
}

// detach detaches a member unless the plan keeps it.
func (p *mixerMember) detach(m *Mixer, plan []*mixerMember) {
	stays := false
	for _, q := range plan {
		if q.stream == p.stream {
			stays = true
			if q.jitter == p.jitter {
				return
			}
		}
	}
	in := &p.stream.in
	in.mu.Lock()
	if p.jitter != nil && in.mixRing == p.jitter.Ring {
		in.mixRing = nil
	}
	in.mu.Unlock()
	if !stays && p.stream.mixer == m {
		p.stream.mixer = nil
	}
}

// remove removes a stream that joins another bridge or mixer. The caller holds the engine's bridging lock.
func (m *Mixer) remove(s *Stream) {
	m.mu.Lock()
	defer m.mu.Unlock()
	kept := make([]*mixerMember, 0, len(m.members))
	for _, p := range m.members {
		if p.stream != s {
			p.sources = slices.DeleteFunc(p.sources, func(q *mixerMember) bool { return q.stream == s })
			kept = append(kept, p)
		}
	}
	for _, p := range m.members {
		if p.stream == s {
			p.detach(m, kept)
		}
	}
	m.members = kept
}

// attach connects the leg's received packets to its jitter buffer.
func (p *mixerMember) attach() {
	if p.jitter == nil {
		return
	}
	in := &p.stream.in
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.closed {
		in.mixRing = p.jitter.Ring
	}
}

func (m *Mixer) clockRunning() bool {
	if m.running == nil {
		return false
	}
	select {
	case <-m.running:
		return false
	default:
		return true
	}
}

// run is the clock. It ends when there are no members.
func (m *Mixer) run(running chan struct{}) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	next := m.engine.clock()
	for {
		select {
		case <-timer.C:
		case <-m.wake:
		}
		now := m.engine.clock()
		if next <= now {
			if !m.tick(running, next) {
				return
			}
			next = max(next+rtp.FrameTime, now-5*rtp.FrameTime) // the machine may have stood still
		} else if m.empty(running) {
			return
		}
		timer.Reset(time.Duration(next - m.engine.clock()))
	}
}

func (m *Mixer) empty(running chan struct{}) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stopIfEmpty(running)
}

// stopIfEmpty ends the clock if no members are left. The caller holds m.mu.
func (m *Mixer) stopIfEmpty(running chan struct{}) bool {
	if len(m.members) > 0 {
		return false
	}
	close(running)
	return true
}

// tick mixes and sends the 20 ms that are due at now. It returns false when the clock ends.
func (m *Mixer) tick(running chan struct{}, now int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopIfEmpty(running) {
		return false
	}
	for _, p := range m.members {
		p.talking = p.jitter != nil && p.jitter.Pull(p.frame[:], now)
	}
	for _, p := range m.members {
		if p.listens {
			p.stream.encodeAndSend(m.mix(p.sources), mixRate, now, fromMixer)
		}
	}
	return true
}

// mix returns the saturated sum of the members' audio.
func (m *Mixer) mix(of []*mixerMember) []int16 {
	talking, only := 0, (*mixerMember)(nil)
	for _, p := range of {
		if p.talking {
			talking, only = talking+1, p
		}
	}
	if talking == 1 {
		return only.frame[:]
	}
	clear(m.sum[:])
	for _, p := range of {
		if p.talking {
			for i, v := range p.frame {
				m.sum[i] += int32(v)
			}
		}
	}
	for i, v := range m.sum {
		m.out[i] = int16(dsp.Saturate(v))
	}
	return m.out[:]
}
