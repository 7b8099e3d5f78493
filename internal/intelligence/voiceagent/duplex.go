package voiceagent

import (
	"context"
	"time"
)

// RealtimeEngine is a speech-to-speech engine. It replaces transcriber, language model and synthesiser.
type Duplex interface {
	// Engine returns the name of the engine.
	Engine() string
	// Open starts a session.
	Open(ctx context.Context, s Setting) (Wire, error)
}

// RealtimeSession is a session with a RealtimeEngine. Its methods are for one goroutine; only Close blocks.
type Wire interface {
	// SendAudio sends the next audio of the caller, mono at 8 kHz.
	Hear(pcm []int16)
	// Say makes the engine speak a text word for word; "" lets it greet in its own words.
	Say(text string)
	// SendText sends text that the caller typed, and requests an answer.
	Type(text string)
	// Truncate reports that the caller interrupted an item, and how much of it was played. whole: all of its audio
	// had arrived by then.
	Cut(item string, heard time.Duration, whole bool)
	// SendToolResults sends the results of tools, and continues the conversation.
	Answer(all []Message)
	// Events returns the events of the session. The channel is closed when the session fails; Err then returns the
	// reason.
	Signs() <-chan Sign
	Err() error
	Close()
}

// RealtimeEvent is an event of a RealtimeSession.
type Sign struct {
	Kind  SignKind
	Item  string        // id of the conversation item
	Text  string        // of InputTranscribed: the whole text; of OutputText: the next piece
	PCM   []int16       // of OutputAudio: the next piece
	Rate  int           // of PCM, in Hz
	Quiet time.Duration // of SpeechStopped: how long the caller had been silent
	Calls []Invocation  // of ResponseDone
	Err   error         // of ResponseDone: why there is no answer
	Void  bool          // of ResponseDone: cancelled, because the caller spoke
}

// RealtimeEventKind is the kind of an event.
type SignKind int

// Kinds of events.
const (
	Began   SignKind = iota // the caller begins to speak
	Stopped                 // the caller has finished
	Heard                   // text of the caller
	Sound                   // audio of the agent
	Said                    // text of the agent's audio
	Done                    // a response is complete or cancelled
)
