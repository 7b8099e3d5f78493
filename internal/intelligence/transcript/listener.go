package transcript

import (
	"context"
	"errors"
)

// Clip is the audio of one speech segment of one channel.
type Clip struct {
	PCM        []int16 // mono
	Rate       int     // samples per second: 8000 or 16000
	NarrowBand bool    // the audio holds nothing above 4 kHz: it came from G.711
	Language   string  // BCP 47, "en" when unknown

	// Phrases are what is expected to be said, where that is known: an engine that can listens for nothing else.
	Phrases []string
	// Terms are what may be said beside the words of the language, the most relevant first: an engine that can understands them too.
	Terms []Term
}

// DurationMS is how long the clip plays, in milliseconds.
func (c Clip) DurationMS() int { return len(c.PCM) * 1000 / max(c.Rate, 1) }

// Heard is what an engine understood of one clip. Word times count from the start of the clip. Text is empty
// when nothing was understood; Words may be empty where the engine has none.
type Heard struct {
	Text       string
	Words      []Word
	Confidence float64 // 0 to 1; 0 when the engine has no opinion
}

// Listener turns speech into text. Implementations are safe for use by several goroutines and honour the
// context's deadline.
type Listener interface {
	// Transcribe recognises one clip.
	Transcribe(ctx context.Context, clip Clip) (Heard, error)
	// Engine names the engine, once it is known.
	Engine() Engine
	// Ready returns nil when the engine can work, and a *Missing that says what to do when it cannot.
	Ready(ctx context.Context) error
}

// Missing is the error of an engine that cannot work as things are. Help is what the operator can do,
// as a command where there is one.
type Missing struct {
	What string // "libpocketsphinx.so.3 was not found"
	Help string // "apt-get install libpocketsphinx3"
}

// Error says what is missing and what helps.
func (m *Missing) Error() string {
	if m.Help == "" {
		return m.What
	}
	return m.What + "; to fix: " + m.Help
}

// IsMissing tells whether err says that no engine can work, and returns it.
func IsMissing(err error) (*Missing, bool) {
	var m *Missing
	ok := errors.As(err, &m)
	return m, ok
}
