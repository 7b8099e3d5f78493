// Package pbx is the switch: it joins signalling, media and the organisations' settings into living calls.
package pbx

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/protocol/media"
	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/stir"
	"soniq/internal/telephony/call"
)

// Records is where calls are written down; package call fills it.
type Records interface {
	Begin(ctx context.Context, n call.New) error
	// Settled returns when the disk has what was written before.
	Settled(ctx context.Context) error
	// BeginLater is Begin for who need not wait: what is written afterwards comes after it. then is told once what became of it, and must not wait.
	BeginLater(ctx context.Context, n call.New, then func(error))
	Change(ctx context.Context, c call.Change) error
	// ChangeLater is Change for what nobody waits for: what is written afterwards comes after it.
	ChangeLater(ctx context.Context, c call.Change) (wait func() error)
	// SureBegin and SureChange keep a beginning or an answer where a killed process finds it again, until settle is called; ok is false
	// where they do not, and its commit has to be waited for.
	SureBegin(n call.New) (settle func(), ok bool)
	SureChange(c call.Change) (settle func(), ok bool)
	// SureDialogs adds to a change that was kept what a restart needs of it.
	SureDialogs(c call.Change) (settle func(), ok bool)
	End(ctx context.Context, e call.Ended) error
	KeepStories(ctx context.Context, all []call.Told) error
	Recorded(ctx context.Context, org, callID, id string, a call.Audio, then call.OnRecorded) error
}

// Ears listen to calls while they run; package transcript fills it. A nil Listener of a call is one not listened to.
type Ears interface {
	// Listen begins with a call whose recording is being written at path.
	Listen(org, callID, path string, c media.RecordConfig) func(media.Chunk)
	// End says that no more audio of the call comes.
	End(org, callID string)
}

// Config is what a Switch is made of.
type Config struct {
	Directory  Directory
	Records    Records
	Media      *media.Engine
	Files      call.Files
	Ears       Ears    // nil: nobody listens
	Speaker    Speaker // nil: texts cannot be spoken
	Audio      Audio   // nil: no audio files
	OnRecorded call.OnRecorded
	Salvage    call.Salvage // finishes what a crash left of a recording
	// CallerName is how a caller from outside who sends no name is shown; "" where that is not known. nil: nobody is asked. It
	// is on the way of every such call.
	CallerName func(ctx context.Context, org, number string) string
	// Verify says what the signatures beside a call from a trunk are worth. It is on the way of every such call, and bounds itself how
	// long it looks. nil: nobody looks.
	Verify func(ctx context.Context, signatures []string, from, to string) stir.Result
	// Room refuses with the error for programs where an organisation may keep no more recordings; nil: all may.
	Room func(ctx context.Context, org string) error
	// Attend finds the script that leads a caller somewhere; nil where there is none. nil: callers are led to phones only.
	Attend func(l Lead) Script
	Rings  func(r Ring) // told of every user a call rings at; must not wait; may be nil
	// Streams are told how calls sound; nil: nobody is.
	Streams Streams
	Log     *slog.Logger
	Now     func() time.Time

	// MediaTimeout is how long a leg that should speak may send nothing before it is asked whether it is still there; 0: for ever.
	MediaTimeout time.Duration

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

	mu       sync.Mutex // guards calls, ending and draining
	calls    map[string]*liveCall
	ending   map[string]*liveCall // over, but for the end of their stories
	draining bool
	stats    counters
	door     door
	stories  sip.Pacer
	forHelp  atomic.Int64 // emergency calls that a shutdown waits for
	archive  archive
	away     aways
	parting  lettingGo

	opening  openings
	dialogs  sync.Map // *sip.Leg to *leg
	byCallID sync.Map // SIP Call-ID to *leg
	tones    sync.Map // country to *media.Clip, its ringing tone
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
	s := &Switch{Config: c, calls: map[string]*liveCall{}, ending: map[string]*liveCall{}}
	s.writing, s.stopWriting = context.WithCancel(context.Background())
	s.stories.Every = time.Second / storiesPerSecond
	s.archive = archive{log: c.Log, write: s.writeStories, drop: s.forget}
	return s
}

// Serve gives the switch the signalling it places calls through; signalling calls it before the first call arrives.
func (s *Switch) Serve(server *sip.Server) { s.server = server }

// Open lets new calls in. Until then they are told to come back: a node that starts carries on its old ones first.
func (s *Switch) Open() { s.door.open.Store(true) }

// Invite takes a new call: from here on its own goroutine owns it. Calls that come faster than they can be set up are
// turned away.
func (s *Switch) Invite(ctx context.Context, in *sip.Inbound) {
	if s.replaced(ctx, in) {
		return
	}
	urgent := false
	if !s.door.enter() {
		if urgent = maybeForHelp(in) && s.door.enterUrgent(); !urgent {
			turnAway(in)
			return
		}
	}
	c := s.newCall(call.New{ID: db.NewID("call"), StartedAt: s.Now()})
	c.urgent = urgent
	c.a = c.newLeg("caller")
	c.a.in, c.a.sip = in, in.Leg()
	in.Listen(c.a.tell)
	if !s.take(c) && !s.takeUrgent(c, in) { // it was on its way when the shutdown began
		s.door.leave()
		in.Reject(503, "Shutting down", retryAfter)
		return
	}
	s.stats.started.Add(1)
	in.Carry(func() { s.carry(ctx, c, c.setUp) })
}

// start gives a call its goroutine. take must have taken it.
func (s *Switch) start(ctx context.Context, c *liveCall, begin func(ctx context.Context)) {
	go s.carry(ctx, c, begin)
}

// carry is what a call's goroutine does.
func (s *Switch) carry(ctx context.Context, c *liveCall, begin func(ctx context.Context)) {
	defer s.running.Done()
	growStack()
	c.carry(context.WithoutCancel(ctx), begin)
	s.mu.Lock()
	delete(s.calls, c.id)
	s.ending[c.id] = c
	s.mu.Unlock()
	c.ledger.settle(s.writing)
	c.shed()
	s.lastMessages(c)
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

// takeUrgent takes a call that may be one for help also during a shutdown, as long as that waits for others.
func (s *Switch) takeUrgent(c *liveCall, in *sip.Inbound) bool {
	if !maybeForHelp(in) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.calls) == 0 {
		return false
	}
	c.urgent = true
	s.calls[c.id] = c
	s.running.Add(1)
	return true
}

// drop forgets a call that was taken and never started.
func (s *Switch) drop(c *liveCall) {
	s.mu.Lock()
	delete(s.calls, c.id)
	s.mu.Unlock()
	s.running.Done()
}

// find returns a call in progress of the organisation.
func (s *Switch) find(org, id string) *liveCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.calls[id]
	if c == nil || c.orgNow() != org {
		return nil
	}
	return c
}

// Carries reports whether a call of any organisation is in progress here.
func (s *Switch) Carries(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[id] != nil
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

// Drain waits until the calls in progress have ended by themselves, and hangs up those that have not when the context ends, but
// emergency calls: those it waits for. It returns when every call is written down, or cannot be; then the next start closes it.
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
	s.shutDown()
	for {
		select {
		case <-done:
			return
		case <-time.After(lastWords):
		}
		if s.forHelp.Load() == 0 {
			s.stopWriting()
			<-done
			return
		}
	}
}

// shutDown hangs every call up that is not for help.
func (s *Switch) shutDown() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		c.inbox.push(message{run: func(context.Context) {
			if l := c.helper(); l != nil {
				c.sw.Log.Warn("the shutdown waits for an emergency call", "call", c.id, "org", c.new.Org)
				s.forHelp.Add(1)
				l.onOver = append(l.onOver, func() { s.forHelp.Add(-1) })
				return
			}
			c.hangUpAll(call.Outcome{Reason: "shutdown", HangupBy: "system"}, normalUnspec)
		}})
	}
}

// lastWords is how long a shutdown waits, once nobody is called for help any more, for calls to be written down.
const lastWords = 5 * time.Second
