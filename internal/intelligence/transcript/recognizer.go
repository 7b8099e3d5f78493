package transcript

import (
	"context"
	"errors"

	"golang.org/x/text/language"
)

// Clip is the audio of one speech segment of one channel.
type Clip struct {
	PCM        []int16 // mono
	Rate       int     // samples per second: 8000 or 16000
	NarrowBand bool    // the audio has nothing above 4 kHz, such as G.711
	Language   string  // BCP 47, "en" if unknown

	// Phrases are the expected phrases, if known. A recogniser with grammars then recognises only these.
	Phrases []string
	// Terms are names and other words that may be said in addition to the words of the language, the most relevant
	// first. A recogniser may ignore them.
	Terms []Term
}

// DurationMS returns the duration of the clip in milliseconds.
func (c Clip) DurationMS() int { return len(c.PCM) * 1000 / max(c.Rate, 1) }

// Recognition is the result for one clip. Word times count from the start of the clip. Text is empty if nothing was
// recognised. Words may be empty if the engine does not return words.
type Recognition struct {
	Text       string
	Words      []Word
	Confidence float64 // 0 to 1; 0 if the engine has none
}

// Recognizer converts speech to text. Implementations are safe for concurrent use and honour the context's deadline.
type Recognizer interface {
	// Transcribe recognises one clip.
	Transcribe(ctx context.Context, clip Clip) (Recognition, error)
	// Engine returns the engine, as far as it is known.
	Engine() Engine
	// Ready returns nil if the engine works, and a *MissingDependency with a remedy if a dependency is missing.
	Ready(ctx context.Context) error
}

// MissingDependency is the error of an engine that cannot work because something is not installed or configured.
// Remedy is the action for the operator, as a command if possible.
type MissingDependency struct {
	Problem string // "libpocketsphinx.so.3 was not found"
	Remedy  string // "apt-get install libpocketsphinx3"
}

// Error returns the problem and its remedy.
func (m *MissingDependency) Error() string {
	if m.Remedy == "" {
		return m.Problem
	}
	return m.Problem + "; to fix: " + m.Remedy
}

// AsMissingDependency returns the MissingDependency in the chain of err, if there is one.
func AsMissingDependency(err error) (*MissingDependency, bool) {
	var m *MissingDependency
	ok := errors.As(err, &m)
	return m, ok
}

// UnsupportedLanguage is the error of an engine that does not know a language. It is also a *MissingDependency,
// because another engine helps.
type UnsupportedLanguage struct {
	MissingDependency
	Language string // BCP 47
}

// Unwrap returns the MissingDependency.
func (u *UnsupportedLanguage) Unwrap() error { return &u.MissingDependency }

// AsUnsupportedLanguage returns the UnsupportedLanguage in the chain of err, if there is one.
func AsUnsupportedLanguage(err error) (*UnsupportedLanguage, bool) {
	var u *UnsupportedLanguage
	ok := errors.As(err, &u)
	return u, ok
}

// LanguageChecker is an engine whose languages are known before it is used.
type LanguageChecker interface {
	// CheckLanguage returns an *UnsupportedLanguage if the engine does not know a language (BCP 47), and nil if it
	// does or cannot tell. "" is the engine's default.
	CheckLanguage(language string) error
}

// CheckLanguage returns an *UnsupportedLanguage if an engine is known not to know a language.
func CheckLanguage(engine any, language string) error {
	if c, ok := engine.(LanguageChecker); ok {
		return c.CheckLanguage(language)
	}
	return nil
}

// DefaultLanguage is the language of calls if nothing sets one.
const DefaultLanguage = "en"

// BaseLanguage returns the language of a BCP 47 tag without region and script, such as "de" of "de-CH". It is
// DefaultLanguage for "", and for text that is no tag.
func BaseLanguage(tag string) string {
	t, err := language.Parse(tag)
	if tag == "" || err != nil {
		return DefaultLanguage
	}
	base, _ := t.Base()
	return base.String()
}
