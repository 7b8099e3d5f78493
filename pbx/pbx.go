// Package pbx is the switch: it joins signalling, media and the organisations' settings into living calls.
package pbx

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"soniq/call"
	"soniq/db"
	"soniq/media"
	"soniq/sip"
)

// Records is where calls are written down; package call fills it.
type Records interface {
	Begin(ctx context.Context, n call.New) error
	Answered(ctx context.Context, n call.New, a call.Answer) error
	Held(ctx context.Context, org, id, role string, held bool, at time.Time) error
	End(ctx context.Context, e call.Ended) error
	Recorded(ctx context.Context, org, callID, id string, a call.Audio, then call.OnRecorded) error
}

// Ears listen to calls while they run; package transcript fills it. A nil Listener of a call is one not listened to.
type Ears interface {
	// Listen begins with a call whose recording is being written at path.
	Listen(org, callID, path string, codec media.Codec) func(media.Chunk)
	// End says that no more audio of the call comes.
	End(org, callID string)
}

// Config is what a Switch is made of.
type Config struct {
	Directory  Directory
	Records    Records
	Media      *media.Engine
	Files      call.Files
	Ears       Ears // nil: nobody listens
	OnRecorded call.OnRecorded
	Log        *slog.Logger
	Now        func() time.Time

	RingTimeout time.Duration // 0: 60 s
	MaxDuration time.Duration // 0: 4 h
}

// A Switch carries calls. It is the sip.Handler of the node.
type Switch struct {
	Config
	server *sip.Server

	running     sync.WaitGroup
	writing     context.Context // until it ends, what could not be written is tried again
	stopWriting context.CancelFunc

	mu       sync.Mutex // guards calls and draining
	calls    map[string]*liveCall
	draining bool
	stats    counters
	door     door
}

type counters struct{ started, answered, failed, gated atomic.Int64 }

// Stats counts calls since start, and those in progress.
type Stats struct {
	Started, Answered, Failed, Refused int64
	TurnedAway                         int64 // 503 because calls came faster than they could be set up
	Active                             int
}

// The limits of a call where settings name none.
const (
	defaultRingTimeout = 60 * time.Second
	defaultMaxDuration = 4 * time.Hour
)

// New makes a switch; Serve must be called before calls arrive.
func New(c Config) *Switch {
	if c.RingTimeout == 0 {
		c.RingTimeout = defaultRingTimeout
	}
	if c.MaxDuration == 0 {
		c.MaxDuration = defaultMaxDuration
	}
	s := &Switch{Config: c, calls: map[string]*liveCall{}}
	s.writing, s.stopWriting = context.WithCancel(context.Background())
	return s
}

// Serve gives the switch the signalling it places calls through; signalling calls it before the first call arrives.
func (s *Switch) Serve(server *sip.Server) { s.server = server }

// Invite takes a new call: from here on its own goroutine owns it. Calls that come faster than they can be set up are
// turned away.
func (s *Switch) Invite(ctx context.Context, in *sip.Inbound) {
	if !s.door.enter() {
		turnAway(in)
		return
	}
	c := s.newCall(in)
	if !s.take(c) { // it was on its way when the shutdown began
		s.door.leave()
		in.Reject(503, "Shutting down", retryAfter)
		return
	}
	s.stats.started.Add(1)
	go func() {
		defer s.running.Done()
		c.run(context.WithoutCancel(ctx))
		s.mu.Lock()
		delete(s.calls, c.id)
		s.mu.Unlock()
		c.ledger.settle(s.writing)
	}()
}

// take makes a call one of those that a shutdown waits for; false once the shutdown has begun.
func (s *Switch) take(c *liveCall) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return false
	}
	s.calls[c.id] = c
	s.running.Add(1)
	return true
}

func (s *Switch) newCall(in *sip.Inbound) *liveCall {
	c := &liveCall{sw: s, id: db.NewID("call"), in: in, started: s.Now(), inbox: newInbox()}
	c.ledger.log = s.Log.With("call", c.id)
	c.a = &leg{role: "caller", sip: in.Leg()}
	in.Listen(func(e sip.Event) { c.inbox.push(message{leg: c.a, event: e}) })
	return c
}

// Active is how many calls are in progress.
func (s *Switch) Active() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls)
}

// Stats returns the counters.
func (s *Switch) Stats() Stats {
	return Stats{Started: s.stats.started.Load(), Answered: s.stats.answered.Load(), Failed: s.stats.failed.Load(),
		Refused: s.stats.gated.Load(), TurnedAway: s.door.turned.Load(), Active: s.Active()}
}

// Drain waits until the calls in progress have ended by themselves, and hangs up those that have not when the context ends.
// It returns when every call is written down, or cannot be; then the next start closes it.
func (s *Switch) Drain(ctx context.Context) {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	done := make(chan struct{})
	go func() { s.running.Wait(); close(done) }()
	select {
	case <-done:
		return
	case <-ctx.Done():
	}
	s.mu.Lock()
	for _, c := range s.calls {
		c.inbox.push(message{event: shutdown{}})
	}
	s.mu.Unlock()
	select {
	case <-done:
	case <-time.After(lastWords):
		s.stopWriting()
		<-done
	}
}

// lastWords is how long, once the time to drain is over, a shutdown waits for calls to be written down.
const lastWords = 5 * time.Second
