// Package voiceagent talks to callers: it hears when they have said what they want to say, has a mind think of an answer, speaks it clause by
// clause, falls silent when it is interrupted, and hands over when it cannot help. It never leaves a caller in silence.
package voiceagent

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/protocol/media"
)

// What comes of a conversation.
const (
	Gone      = ""          // the caller hung up
	Completed = "completed" // the caller got what they wanted
	Handoff   = "handoff"   // the caller is to be led to a person
	Failed    = "failed"    // an engine did not do its work
	Silence   = "silence"   // the caller said nothing
)

// An Ear understands what is said.
type Ear interface {
	// Hear gives the words of mono audio at 8 kHz, "" where there are none. Phrases are what is expected, where that is known.
	Hear(ctx context.Context, pcm []int16, phrases []string, language string) (text string, err error)
	// Ready says what is missing where nothing can be understood.
	Ready(ctx context.Context) error
}

// A Mind thinks of what to say. One is made for each conversation.
type Mind interface {
	// Engine names what it is made of.
	Engine() string
	// Phrases are what it expects to hear; nil: anything.
	Phrases() []string
	// Reply says what is answered to a conversation, piece by piece, and returns the tools it wants used before it goes on. It returns soon
	// after ctx is done.
	Reply(ctx context.Context, told []Message, say func(text string)) ([]Invocation, error)
}

// A Message is a part of a conversation: what the caller said (user), what they heard (assistant), or what a tool answered (tool).
type Message struct {
	Role  string
	Text  string
	Calls []Invocation // of the assistant
	Of    string       // the invocation a tool answers
}

// An Invocation is a tool that a mind wants used. Arguments are JSON as the mind wrote it.
type Invocation struct {
	ID, Name, Arguments string
}

// A Caller is who is talked to.
type Caller interface {
	// Say begins to play a clip in place of the one before.
	Say(ctx context.Context, clip *media.Clip) (Playing, error)
	// Pour begins to play sound that still comes in place of what was played before.
	Pour(ctx context.Context, feed *media.Feed) (Playing, error)
	// Listen gives what they say, in mono at 8 kHz.
	Listen(ctx context.Context) (pcm <-chan []int16, stop func(), err error)
	// Pressed tells of keys, which TakeKey gives.
	Pressed() <-chan struct{}
	TakeKey() (rune, bool)
	// Step notes in the call's timeline what happened.
	Step(kind string, d map[string]any)
}

// Playing is a clip on its way to the caller.
type Playing interface {
	Done() <-chan struct{}
	Heard() time.Duration
	Stop()
}

// A Setting is what an agent is told of one conversation.
type Setting struct {
	Org, CallID, FlowID string
	Instructions        string
	Voice, Language     string
	Greeting            string
	Tools               []Tool
	Handoff             bool          // there is a person, or another place, to hand over to
	Longest             time.Duration // the conversation
	Interruptible       bool
}

// A Result is what came of a conversation.
type Result struct {
	Outcome string
	Reason  string // for people
	To      string // where the caller is to be led, where a tool says so
	Message bool   // the caller wants to leave a message
	Words   string // the last of what was said, for who takes the call over
}

// Config is what the room is made of.
type Config struct {
	DB  *db.DB
	Log *slog.Logger
	Now func() time.Time
	// Ear understands callers; nil: nobody does.
	Ear Ear
	// Voice speaks a text of an organisation; what is fleeting is kept nowhere.
	Voice func(ctx context.Context, org, text, voice, language string, fleeting bool) (*media.Clip, error)
	// Speaks says what is missing where nothing can be spoken. nil: nothing.
	Speaks func(ctx context.Context) error
	// Mind makes the mind of a conversation; nil: there are no agents.
	Mind func(s Setting) Mind
	// Duplex talks to callers in place of Ear and Mind; the voice says what must be said for certain. May be nil.
	Duplex Duplex
	// Most is how many conversations there may be at once; 0: any number.
	Most int
	// Told is told of words as soon as they were said, and when the first of the conversation were. May be nil.
	Told func(org, call string, w Words, first time.Time)
}

// Service is the room. It is safe for concurrent use.
type Service struct {
	Config

	mu      sync.Mutex // guards the fields below
	active  int        // conversations for which there is room
	talks   map[string]int
	waiting map[string][]chan struct{}
}

// New makes the room.
func New(c Config) *Service { return &Service{Config: c} }

// Enter makes room for one conversation more, until leave is called; an error says why there can be none.
func (s *Service) Enter(ctx context.Context) (leave func(), err error) {
	if err := s.Ready(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Most > 0 && s.active >= s.Most {
		return nil, fmt.Errorf("%d callers talk to agents already, as many as this server lets (--max-agents)", s.active)
	}
	s.active++
	return sync.OnceFunc(s.leave), nil
}

func (s *Service) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active--
}

// Ready says why nobody can be talked to; nil where they can.
func (s *Service) Ready(ctx context.Context) error {
	switch {
	case s.Duplex != nil:
	case s.Mind == nil:
		return errOff
	case s.Ear == nil:
		return errDeaf
	default:
		if err := s.Ear.Ready(ctx); err != nil {
			return err
		}
	}
	if s.Speaks == nil {
		return nil
	}
	return s.Speaks(ctx)
}
