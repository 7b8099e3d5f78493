// Package pbx is the switch: it connects SIP, media and the settings of the organisations to calls in progress.
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

// Records writes calls to the database. Package call implements it.
type Records interface {
	Begin(ctx context.Context, n call.New) error
	// WaitDurable returns when all earlier writes are on disk.
	WaitDurable(ctx context.Context) error
	// BeginAsync is Begin without waiting. Later writes come after it. It calls then once with the result; then must
	// not block.
	BeginAsync(ctx context.Context, n call.New, then func(error))
	Change(ctx context.Context, c call.Change) error
	// ChangeAsync is Change without waiting. Later writes come after it. wait returns the result.
	ChangeAsync(ctx context.Context, c call.Change) (wait func() error)
	// JournalBegin and JournalChange keep a beginning or an answer in the journal, where the next start finds it
	// after a kill, until settle is called. If ok is false, the caller has to wait for the commit.
	JournalBegin(n call.New) (settle func(), ok bool)
	JournalChange(c call.Change) (settle func(), ok bool)
	// JournalDialogs adds to a change in the journal the state that a restart needs.
	JournalDialogs(c call.Change) (settle func(), ok bool)
	End(ctx context.Context, e call.Ended) error
	WriteTimelines(ctx context.Context, all []call.CallTimeline) error
	Recorded(ctx context.Context, org, callID, id string, a call.Audio, then call.OnRecorded) error
}

// LiveTranscriber receives the audio of calls in progress. Package transcript implements it. A call with a nil
// listener is not transcribed.
type LiveTranscriber interface {
	// Listen starts with a call whose recording is written at path.
	Listen(org, callID, path string, c media.RecordConfig) func(media.Chunk)
	// End marks the end of the call's audio.
	End(org, callID string)
}

// Config holds the dependencies and settings of a Switch.
type Config struct {
	Directory        Directory
	Records          Records
	Media            *media.Engine
	Files            call.Files
	LiveTranscriber  LiveTranscriber // nil: no live transcription
	Speaker          Speaker         // nil: no speech synthesis
	Audio            Audio           // nil: no audio files
	OnRecorded       call.OnRecorded
	RecoverRecording call.RecoverRecording // completes a recording that a crash left unfinished
	// CallerName returns the display name of an external caller who sends no name; empty if unknown. nil disables it.
	// Every such call waits for it.
	CallerName func(ctx context.Context, org, number string) string
	// Verify checks the PASSporTs of a call from a trunk (RFC 8224). Every such call waits for it; it has to limit
	// its own time. nil disables it.
	Verify func(ctx context.Context, signatures []string, from, to string) stir.Result
	// RecordingQuota returns the API error if an organisation has reached its limit of recordings. nil: no limit.
	RecordingQuota func(ctx context.Context, org string) error
	// Attend returns the script for a target; nil if there is none. With a nil Attend, calls reach phones only.
	Attend func(l Handoff) Script
	OnRing func(r Ring) // called for every user that a call rings; must not block; may be nil
	// Streams publishes the live quality of calls; nil disables it.
	Streams Streams
	Log     *slog.Logger
	Now     func() time.Time

	// MediaTimeout is the time without RTP after which a leg is probed by re-INVITE; 0 disables it.
	MediaTimeout time.Duration

	RingTimeout time.Duration // 0: 60 s
	MaxDuration time.Duration // 0: 4 h
}

// Switch runs the calls of the node. It implements sip.Handler.
type Switch struct {
	Config
	server *sip.Server

	running     sync.WaitGroup
	writing     context.Context // failed writes are tried again until it ends
	stopWriting context.CancelFunc

	mu             sync.Mutex // guards calls, ending and draining
	calls          map[string]*liveCall
	ending         map[string]*liveCall // ended calls with unwritten timelines
	draining       bool
	stats          counters
	admission      admission
	timelinePacer  sip.RateLimiter
	emergencyCalls atomic.Int64 // number of emergency calls that a shutdown waits for
	archive        timelineArchive
	disconnected   disconnectedLegs
	releases       pendingReleases

	earlyTraces earlyTraces
	dialogs     sync.Map // *sip.Leg to *leg
	byCallID    sync.Map // SIP Call-ID to *leg
	tones       sync.Map // country to *media.Clip with its ringing tone
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
	s := &Switch{Config: c, calls: map[string]*liveCall{}, ending: map[string]*liveCall{}}
	s.writing, s.stopWriting = context.WithCancel(context.Background())
	s.timelinePacer.Interval = time.Second / timelinesPerSecond
	s.archive = timelineArchive{log: c.Log, write: s.writeTimelines, drop: s.forgetCall}
	return s
}

// Serve sets the SIP server that the switch places calls through. The server calls it before the first call arrives.
func (s *Switch) Serve(server *sip.Server) { s.server = server }

// Open starts to admit new calls. Until then they get 503 with Retry-After, because a starting node first continues
// its old calls.
func (s *Switch) Open() { s.admission.open.Store(true) }

// Invite handles a new call, which runs on a goroutine of its own. Calls are refused with 503 if too many are being
// set up.
func (s *Switch) Invite(ctx context.Context, in *sip.Inbound) {
	if s.handleReplaces(ctx, in) {
		return
	}
	urgent := false
	if !s.admission.admit() {
		if urgent = maybeEmergency(in) && s.admission.admitUrgent(); !urgent {
			rejectOverloaded(in)
			return
		}
	}
	c := s.newCall(call.New{ID: db.NewID("call"), StartedAt: s.Now()})
	c.urgent = urgent
	c.a = c.newLeg("caller")
	c.a.in, c.a.sip = in, in.Leg()
	in.Listen(c.a.deliver)
	if !s.register(c) && !s.registerUrgent(c, in) { // the call arrived when the shutdown began
		s.admission.done()
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
	c.writes.drain(s.writing)
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
		Refused: s.stats.gated.Load(), TurnedAway: s.admission.refused.Load(), Active: s.Active()}
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
		c.inbox.push(message{run: func(context.Context) {
			if l := c.emergencyLeg(); l != nil {
				c.sw.Log.Warn("the shutdown waits for an emergency call", "call", c.id, "org", c.new.Org)
				s.emergencyCalls.Add(1)
				l.onOver = append(l.onOver, func() { s.emergencyCalls.Add(-1) })
				return
			}
			c.hangUpAll(call.Outcome{Reason: "shutdown", HangupBy: "system"}, normalUnspec)
		}})
	}
}

// finalWriteWait is the time that a shutdown allows for writes after the last emergency call has ended.
const finalWriteWait = 5 * time.Second
