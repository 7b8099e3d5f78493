package voiceagent

import (
	"context"
	"time"
)

// A Duplex hears, thinks and speaks by itself, in place of ear, mind and voice.
type Duplex interface {
	// Engine names what it is made of.
	Engine() string
	// Open begins a conversation; the error says why there is none.
	Open(ctx context.Context, s Setting) (Wire, error)
}

// A Wire is a conversation with a Duplex. Its methods are for one goroutine; none but Close waits for anybody.
type Wire interface {
	// Hear gives what the caller says next, in mono at 8 kHz.
	Hear(pcm []int16)
	// Say has a text said word for word; "" has the Duplex say what it wants.
	Say(text string)
	// Type tells what the caller typed, and has it answered.
	Type(text string)
	// Cut says that the caller fell into something that was said, and how much of it they had heard. Whole: all of it had come by then.
	Cut(item string, heard time.Duration, whole bool)
	// Answer tells what tools found out, and has the conversation go on.
	Answer(all []Message)
	// Signs tell what happens. It is closed when the wire is broken; then Err says why.
	Signs() <-chan Sign
	Err() error
	Close()
}

// A Sign is something that a Duplex noticed or did.
type Sign struct {
	Kind  SignKind
	Item  string        // of the conversation that it is about
	Text  string        // of Heard: all of it; of Said: the next piece
	PCM   []int16       // of Sound: the next piece
	Rate  int           // of PCM, in Hz
	Quiet time.Duration // of Stopped: how long the caller was silent by then
	Calls []Invocation  // of Done
	Err   error         // of Done: why it could not be answered
	Void  bool          // of Done: it was given up, because the caller spoke
}

// SignKind is what a sign tells.
type SignKind int

// The kinds of signs.
const (
	Began   SignKind = iota // the caller speaks
	Stopped                 // the caller has finished
	Heard                   // what the caller said
	Sound                   // the agent speaks
	Said                    // in words
	Done                    // an answer is complete, or was given up
)
