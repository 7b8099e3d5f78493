// Package pbx is the switch: it connects SIP, media and the settings of the organisations to calls in progress.
package pbx

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/wiring"
	"soniq/internal/protocol/media"
	"soniq/internal/protocol/media/record"
	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/guard"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx/admission"
	"soniq/internal/telephony/pbx/calltrace"
	"soniq/internal/telephony/pbx/cause"
	"soniq/internal/telephony/pbx/pendingrelease"
)

// Store writes calls to the database. Package call implements it.
type Store interface {
	Begin(ctx context.Context, n call.New) error
	// BeginAsync is Begin without waiting. Later writes come after it. It calls then once with the result; then must
	// not block.
	BeginAsync(ctx context.Context, n call.New, then func(error))
	Change(ctx context.Context, c call.Change) error
	// ChangeAsync is Change without waiting. Later writes come after it. wait returns the result.
	ChangeAsync(ctx context.Context, c call.Change) (wait func() error)
	End(ctx context.Context, e call.Ended) error
}

// Journal makes beginnings and answers durable before their commit. Package call implements it.
type Journal interface {
	// JournalBegin and JournalChange keep a beginning or an answer in the journal, where the next start finds it
	// after a kill, until settle is called. If ok is false, the caller has to wait for the commit.
	JournalBegin(n call.New) (settle func(), ok bool)
	JournalChange(c call.Change) (settle func(), ok bool)
	// JournalDialogs adds to a change in the journal the state that a restart needs.
	JournalDialogs(c call.Change) (settle func(), ok bool)
	// WaitDurable returns when all earlier writes are on disk.
	WaitDurable(ctx context.Context) error
}

// Timelines stores the timelines of calls that have ended. Package call implements it.
type Timelines interface {
	WriteTimelines(ctx context.Context, all []call.CallTimeline) error
}

// Recordings stores the results of recordings. Package recording implements it.
type Recordings interface {
	Recorded(ctx context.Context, org, callID, id string, a call.Audio, then call.OnRecorded) error
}

// RecordedCall is a call whose recording is written at Path.
type RecordedCall struct {
	Org, ID, Path string
	Outbound      bool // the organisation called: the first channel is its own
}

// LiveTranscriber receives the audio of calls in progress. Package transcript implements it. A call with a nil
// listener is not transcribed.
type LiveTranscriber interface {
	// Listen starts with a call that is being recorded.
	Listen(r RecordedCall, c record.Config) func(record.Chunk)
	// End marks the end of the call's audio.
	End(org, callID string)
}

// Config holds the dependencies and settings of a Switch.
type Config struct {
	Directory
	Records
	Sounds
	Routing
	// Streams publishes the live quality of calls; nil disables it.
	Streams Streams
	Log     *slog.Logger
	Clock   clock.Clock // nil: the machine's

	// MediaTimeout is the time without RTP after which a leg is probed by re-INVITE; 0 disables it.
	MediaTimeout time.Duration
	// BrowserTimeout replaces MediaTimeout for browsers, whose pages may be closed during a call; 0: MediaTimeout.
	BrowserTimeout time.Duration

	CallLimits admission.Limits // calls in progress at once

	RingTimeout time.Duration // 0: 60 s
	MaxDuration time.Duration // 0: 4 h
}

// Directory finds callers, callees and the routes to external numbers.
type Directory struct {
	Identity Identity
	Routes   Routes
	Outbound Outbound
}

// Records stores what happens in calls.
type Records struct {
	Store            Store
	Journal          Journal
	Timelines        Timelines
	Recordings       Recordings
	Files            call.Files
	OnRecorded       call.OnRecorded
	RecoverRecording call.RecoverRecording // completes a recording that a crash left unfinished
	StorageQuota     StorageQuota
}

// Sounds has the media of calls: streams, live transcription, speech and audio files.
type Sounds struct {
	Media           *media.Engine
	LiveTranscriber LiveTranscriber // nil: no live transcription
	Speaker         Speaker         // nil: no speech synthesis
	Audio           Audio           // nil: no audio files
}

// Routing decides about incoming calls beyond the directory.
type Routing struct {
	CallerNames CallerNames
	Verifier    Verifier // nil: calls are not verified
	Scripts     Scripts
}

// Switch runs the calls of the node. It implements sip.Handler.
type Switch struct {
	cfg           Config
	server        *sip.Server
	ringObservers []RingObserver

	running     sync.WaitGroup
	writing     context.Context // failed writes are tried again until it ends
	stopWriting context.CancelFunc

	mu             sync.Mutex // guards calls, ending and draining
	calls          map[string]*liveCall
	ending         map[string]*liveCall // ended calls with unwritten timelines
	draining       bool
	stats          counters
	admission      admission.Gate
	shares         admission.Calls
	timelinePacer  guard.RateLimiter
	emergencyCalls atomic.Int64 // number of emergency calls that a shutdown waits for
	archive        calltrace.Archive[*liveCall]
	disconnected   byDevice[*leg]       // legs whose phones have lost their connection in a restart
	lostPhones     byDevice[*lostPhone] // ring again
	formerRinging  byDevice[*lostPhone] // may ring on for an INVITE that is over
	releases       pendingrelease.Users

	earlyTraces calltrace.Early
	dialogs     sync.Map // *sip.Leg to *leg
	byCallID    sync.Map // SIP Call-ID to *leg
	tones       sync.Map // country to *clip.Clip with its ringing tone
}

type counters struct{ started, answered, failed, gated atomic.Int64 }

// Stats holds counters since the start, and the number of calls in progress.
type Stats struct {
	Started, Answered, Failed, Refused int64
	TurnedAway                         int64 // 503 responses because too many calls were being set up
	Active                             int
}

// Limits of a call without settings.
const (
	defaultRingTimeout = 60 * time.Second
	defaultMaxDuration = 4 * time.Hour
)

// New returns a switch. Serve has to be called before calls arrive.
func New(c Config) *Switch {
	if c.RingTimeout == 0 {
		c.RingTimeout = defaultRingTimeout
	}
	if c.MaxDuration == 0 {
		c.MaxDuration = defaultMaxDuration
	}
	c.Clock = clock.OrSystem(c.Clock)
	wiring.Check(c, "LiveTranscriber", "Speaker", "Audio", "Streams", "Verifier")
	s := &Switch{cfg: c, calls: map[string]*liveCall{}, ending: map[string]*liveCall{}}
	s.writing, s.stopWriting = context.WithCancel(context.Background())
	s.timelinePacer.Interval = time.Second / timelinesPerSecond
	s.archive = calltrace.NewArchive(c.Log, s.writeTimelines, s.forgetCall)
	return s
}

// now returns the current time.
func (s *Switch) now() time.Time { return s.cfg.Clock.Now() }

// Serve sets the SIP server that the switch places calls through. The server calls it before the first call arrives.
func (s *Switch) Serve(server *sip.Server) { s.server = server }

// Open starts to admit new calls. Until then they get 503 with Retry-After, because a starting node first continues
// its old calls.
func (s *Switch) Open() { s.admission.Start() }

// Invite handles a new call, which runs on a goroutine of its own. Calls are refused with 503 if too many are being
// set up.
func (s *Switch) Invite(ctx context.Context, in *sip.Inbound) {
	if s.handleReplaces(ctx, in) {
		return
	}
	urgent := false
	if !s.admission.Admit() {
		if urgent = maybeEmergency(in) && s.admission.AdmitUrgent(); !urgent {
			rejectOverloaded(in)
			return
		}
	}
	id, simulated := s.cfg.Identity.SimulatedCall(in.Source)
	if !simulated {
		id = db.NewID("call")
	}
	c := s.newCall(call.New{ID: id, StartedAt: s.now()})
	c.urgent = urgent
	c.a = c.newLeg("caller")
	c.a.in, c.a.sip = in, in.Leg()
	in.Listen(c.a.deliver)
	c.nameCall(in)
	if !s.register(c) && !s.registerUrgent(c, in) { // the call arrived when the shutdown began
		s.admission.Done()
		in.Reject(503, "the server is shutting down", retryAfter)
		return
	}
	s.stats.started.Add(1)
	in.RunAfterInvite(func() { s.runCall(ctx, c, c.setUp) })
}

// startCall runs a call on a new goroutine. register must have succeeded.
func (s *Switch) startCall(ctx context.Context, c *liveCall, begin func(ctx context.Context)) {
	go s.runCall(ctx, c, begin)
}

// runCall runs a call from its beginning until its timeline is written.
func (s *Switch) runCall(ctx context.Context, c *liveCall, begin func(ctx context.Context)) {
	defer s.running.Done()
	growStack()
	c.run(context.WithoutCancel(ctx), begin)
	s.mu.Lock()
	delete(s.calls, c.id)
	s.ending[c.id] = c
	s.mu.Unlock()
	c.writes.Drain(s.writing)
	c.releaseMemory()
	s.awaitFinalMessages(c)
}

// register adds a call to the calls that a shutdown waits for. It returns false after the shutdown has begun.
func (s *Switch) register(c *liveCall) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return false
	}
	s.calls[c.id] = c
	s.running.Add(1)
	return true
}

// registerUrgent registers a possible emergency call even during a shutdown, as long as the shutdown waits for other
// calls.
func (s *Switch) registerUrgent(c *liveCall, in *sip.Inbound) bool {
	if !maybeEmergency(in) {
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

// unregister removes a call that was registered and never started.
func (s *Switch) unregister(c *liveCall) {
	s.mu.Lock()
	delete(s.calls, c.id)
	s.mu.Unlock()
	s.running.Done()
}

// find returns a call in progress of the organisation; nil if there is none.
func (s *Switch) find(org, id string) *liveCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.calls[id]
	if c == nil || c.orgNow() != org {
		return nil
	}
	return c
}

// HasCall reports whether a call of any organisation is in progress here.
func (s *Switch) HasCall(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[id] != nil
}

// Active returns the number of calls in progress.
func (s *Switch) Active() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls)
}

// Stats returns the counters.
func (s *Switch) Stats() Stats {
	return Stats{Started: s.stats.started.Load(), Answered: s.stats.answered.Load(), Failed: s.stats.failed.Load(),
		Refused: s.stats.gated.Load(), TurnedAway: s.admission.TurnedAway(), Active: s.Active()}
}

// Drain waits until the calls in progress end by themselves. When ctx ends, it hangs up the others, except emergency
// calls, which it waits for. It returns when every call is written, or cannot be written. The next start closes the
// latter.
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
		case <-time.After(finalWriteWait):
		}
		if s.emergencyCalls.Load() == 0 {
			s.stopWriting()
			<-done
			return
		}
	}
}

// shutDown hangs up all calls except emergency calls.
func (s *Switch) shutDown() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		c.inbox.Push(message{run: func(context.Context) {
			if l := c.emergencyLeg(); l != nil {
				c.sw.cfg.Log.Warn("the shutdown waits for an emergency call", "call", c.id, "org", c.new.Org)
				s.emergencyCalls.Add(1)
				l.onOver = append(l.onOver, func() { s.emergencyCalls.Add(-1) })
				return
			}
			c.hangUpAll(call.Outcome{Reason: "shutdown", HangupBy: "system"}, cause.NormalUnspec)
		}})
	}
}

// finalWriteWait is the time that a shutdown allows for writes after the last emergency call has ended.
const finalWriteWait = 5 * time.Second

// HasPendingRelease reports whether a call to the user is not fully released here. That is the case if the user is about to be rung, or if
// a phone rings or talks. A phone that has not yet answered our CANCEL or BYE counts too. The next INVITE could overtake that message. The
// wait for a silent phone ends after maxReleaseWait.
func (s *Switch) HasPendingRelease(user string) bool { return s.releases.Has(user) }

// retryAfter is the Retry-After value of a 503 response to a call that is refused for overload or shutdown.
const retryAfter = 2 * time.Second

// rejectOverloaded refuses a call with 503 and Retry-After (RFC 3261 §21.5.4) before it costs anything. It does not
// affect calls in progress.
func rejectOverloaded(in *sip.Inbound) {
	in.Listen(func(sip.Event) {})
	in.Reject(503, "the server has reached its limit of calls", retryAfter)
}

// growStack grows the goroutine's stack once to the size that a call needs. Otherwise the stack would grow in steps,
// with a copy each time.
//
//go:noinline
func growStack() {
	var room [6 << 10]byte
	touch(&room)
}

//go:noinline
func touch(*[6 << 10]byte) {}
