package voiceagent

import (
	"context"
	"time"
)

// RealtimeEngine is a speech-to-speech engine. It replaces transcriber, language model and synthesiser.
type RealtimeEngine interface {
	// Engine returns the name of the engine.
	Engine() string
	// Open starts a session.
	Open(ctx context.Context, s ConversationSettings) (RealtimeSession, error)
}

// RealtimeSession is a session with a RealtimeEngine. Its methods are for one goroutine; only Close blocks.
type RealtimeSession interface {
	// SendAudio sends the next audio of the caller, mono at 8 kHz.
	SendAudio(pcm []int16)
	// Say makes the engine speak a text word for word; "" lets it greet in its own words.
	Say(text string)
	// SendText sends text that the caller typed, and requests an answer.
	SendText(text string)
	// Truncate reports that the caller interrupted an item, and how much of it was played. whole: all of its audio
	// had arrived by then.
	Truncate(item string, heard time.Duration, whole bool)
	// SendToolResults sends the results of tools, and continues the conversation.
	SendToolResults(all []Message)
	// Events returns the events of the session. The channel is closed when the session fails; Err then returns the
	// reason.
	Events() <-chan RealtimeEvent
	Err() error
	Close()
}

// RealtimeEvent is an event of a RealtimeSession.
type RealtimeEvent struct {
	Kind      RealtimeEventKind
	Item      string        // id of the conversation item
	Text      string        // of InputTranscribed: the whole text; of OutputText: the next piece
	PCM       []int16       // of OutputAudio: the next piece
	Rate      int           // of PCM, in Hz
	SilentFor time.Duration // of SpeechStopped: how long the caller had been silent
	ToolCalls []ToolCall    // of ResponseDone
	Err       error         // of ResponseDone: why there is no answer
	Cancelled bool          // of ResponseDone: cancelled, because the caller spoke
}

// RealtimeEventKind is the kind of an event.
type RealtimeEventKind int

// Kinds of events.
const (
	SpeechStarted    RealtimeEventKind = iota // the caller begins to speak
	SpeechStopped                             // the caller has finished
	InputTranscribed                          // text of the caller
	OutputAudio                               // audio of the agent
	OutputText                                // text of the agent's audio
	ResponseDone                              // a response is complete or cancelled
)
