// Package voiceagent runs conversations of voice agents with callers. It detects the end of the caller's turn,
// generates an answer with a language model, and synthesises it clause by clause. It stops speaking when interrupted
// (barge-in), and hands over if it cannot help. It never leaves a caller in silence.
package voiceagent

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/observe"
	"soniq/internal/platform/redact"
	"soniq/internal/platform/wiring"
	"soniq/internal/protocol/media"
	"soniq/internal/protocol/media/clip"
)

// Outcomes of a conversation.
const (
	CallerGone = ""          // the caller hung up
	Completed  = "completed" // the caller was helped
	Handoff    = "handoff"   // transfer to a person
	Failed     = "failed"    // an engine failed
	Silence    = "silence"   // the caller said nothing
)

// Transcriber transcribes a turn of the caller.
type Transcriber interface {
	// Transcribe returns the words of mono audio at 8 kHz, "" if there are none. phrases are the expected phrases, if
	// known.
	Transcribe(ctx context.Context, pcm []int16, phrases []string, language string) (text string, err error)
	// Ready returns an error that names the missing dependency if speech cannot be recognised.
	Ready(ctx context.Context) error
}

// LanguageModel generates the answers of an agent. There is one per conversation.
type LanguageModel interface {
	// Engine returns the name of the engine.
	Engine() string
	// Phrases returns the phrases that it expects from the caller; nil: any.
	Phrases() []string
	// Reply passes the answer to a conversation to say, piece by piece, and returns the tools to call before it
	// continues. It returns soon after ctx is done.
	Reply(ctx context.Context, told []Message, say func(text string)) ([]ToolCall, error)
}

// Message is a part of a conversation: text of the caller (user), played text of the agent (assistant), or the result
// of a tool (tool).
type Message struct {
	Role       string
	Text       string
	ToolCalls  []ToolCall // of the assistant
	ToolCallID string     // id of the tool call of a result
}

// ToolCall is a tool call requested by a model. Arguments are JSON as the model wrote it.
type ToolCall struct {
	ID, Name, Arguments string
}

// Caller is the caller's side of the call: audio, keys and timeline.
type Caller interface {
	// Say starts playing a clip; it replaces the previous one.
	Say(ctx context.Context, clip *clip.Clip) (Playback, error)
	// PlayStream starts playing audio that is still arriving; it replaces the previous audio.
	PlayStream(ctx context.Context, feed *media.InjectedAudio) (Playback, error)
	// Listen returns the caller's audio, mono at 8 kHz.
	Listen(ctx context.Context) (pcm <-chan []int16, stop func(), err error)
	// KeyPressed returns a channel that is closed while TakeKey has a key to return.
	KeyPressed() <-chan struct{}
	TakeKey() (rune, bool)
	// AddEntry adds an entry to the call's timeline.
	AddEntry(kind string, d map[string]any)
}

// Playback is a clip that is being played to the caller. Heard returns how much was played.
type Playback interface {
	Done() <-chan struct{}
	Played() time.Duration
	Stop()
}

// ConversationSettings has the settings of one conversation.
type ConversationSettings struct {
	Org, CallID, FlowID string
	Instructions        string
	Voice, Language     string
	Greeting            string
	Tools               []Tool
	Handoff             bool          // a person or another destination is available for a handover
	MaxDuration         time.Duration // of the conversation
	Interruptible       bool
}

// Result is the result of a conversation.
type Result struct {
	Outcome      string
	Reason       string // for display
	Destination  string // destination of a transfer, if a tool set one
	LeaveMessage bool   // the caller wants to leave a message
	Transcript   string // last messages, for the person who takes the call over
}

// Config has the dependencies and settings of a Service.
type Config struct {
	DB    *db.DB
	Log   *slog.Logger
	Clock clock.Clock // nil: the system clock
	// Transcriber transcribes callers; nil: speech recognition is off.
	Transcriber Transcriber
	Synthesizer Synthesizer
	Models      Models // nil: there are no agents
	// Realtime replaces Transcriber and Models; mandatory announcements still use Synthesizer. May be nil.
	Realtime RealtimeEngine
	// Redactions has what organisations remove from stored words.
	Redactions redact.Policies
	// MaxConversations limits concurrent conversations; 0: no limit.
	MaxConversations int
}

// Synthesizer speaks texts.
type Synthesizer interface {
	// Synthesize speaks a text of an organisation; if uncached is set the audio is not cached.
	Synthesize(ctx context.Context, org, text, voice, language string, uncached bool) (*clip.Clip, error)
	// Ready returns an error if speech cannot be synthesised.
	Ready(ctx context.Context) error
}

// Models returns the language model of a conversation.
type Models interface {
	NewModel(s ConversationSettings) LanguageModel
}

// ModelFunc adapts a function to Models.
type ModelFunc func(s ConversationSettings) LanguageModel

// NewModel returns the result of the function.
func (f ModelFunc) NewModel(s ConversationSettings) LanguageModel { return f(s) }

// UtteranceObserver is notified of each finished utterance, with the start of the first one of the conversation.
type UtteranceObserver interface {
	UtteranceFinished(org, call string, w Utterance, first time.Time)
}

// Service runs conversations. It is safe for concurrent use.
type Service struct {
	cfg                Config
	utteranceObservers []UtteranceObserver
	stall              time.Duration // stallTimeout, unless a test sets it

	mu            sync.Mutex // guards the fields below
	active        int        // reserved conversations
	conversations map[string]int
	waiting       map[string][]chan struct{}
}

// New returns a service. It panics if a dependency is missing.
func New(c Config) *Service {
	c.Clock = clock.OrSystem(c.Clock)
	wiring.Check(c, "Transcriber", "Models", "Realtime")
	return &Service{cfg: c, stall: stallTimeout}
}

// Observe adds an observer. It panics if o is no UtteranceObserver. Call it before the first conversation.
func (s *Service) Observe(o any) {
	observe.Require("voiceagent", o, observe.Add(&s.utteranceObservers, o))
}

// Reserve reserves one conversation until release is called. It returns an error if the limit is reached or an engine
// is not ready.
func (s *Service) Reserve(ctx context.Context) (leave func(), err error) {
	if err := s.Ready(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cfg.MaxConversations > 0 && s.active >= s.cfg.MaxConversations {
		return nil, fmt.Errorf("%d callers talk to agents already, as many as this server lets (--max-agents)", s.active)
	}
	s.active++
	return sync.OnceFunc(s.release), nil
}

func (s *Service) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active--
}

// languageChecker is an engine whose languages are known before it is used.
type languageChecker interface {
	CheckLanguage(language string) error
}

// CheckHeard returns an error if callers who speak a language are not understood. A RealtimeEngine is assumed to
// understand all.
func (s *Service) CheckHeard(language string) error {
	if c, ok := s.cfg.Transcriber.(languageChecker); ok && s.cfg.Realtime == nil {
		return c.CheckLanguage(language)
	}
	return nil
}

// CheckLanguage returns an error if no conversation is possible in a language.
func (s *Service) CheckLanguage(language string) error {
	if err := s.CheckHeard(language); err != nil {
		return err
	}
	if c, ok := s.cfg.Synthesizer.(languageChecker); ok {
		return c.CheckLanguage(language)
	}
	return nil
}

// Ready returns why no conversation is possible; nil if it is.
func (s *Service) Ready(ctx context.Context) error {
	switch {
	case s.cfg.Realtime != nil:
	case s.cfg.Models == nil:
		return errNoAgent
	case s.cfg.Transcriber == nil:
		return errNoRecognition
	default:
		if err := s.cfg.Transcriber.Ready(ctx); err != nil {
			return err
		}
	}
	return s.cfg.Synthesizer.Ready(ctx)
}
