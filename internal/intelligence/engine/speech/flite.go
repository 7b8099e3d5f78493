package speech

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"soniq/internal/intelligence/transcript"
)

// Flite is the builtin speech synthesiser: flite in a worker process of this binary, English only. The worker starts
// with the first text, is restarted after a crash, and ends after five minutes without requests.
type Flite struct {
	command  []string
	textSlot chan struct{} // holds one token: one text at a time

	mu         sync.Mutex // guards the fields below
	worker     *workerProcess
	idleTimer  *time.Timer
	startError error
	lastStart  time.Time
	closed     bool
}

// NewFlite returns the synthesiser. command starts a worker; nil means this binary with the argument "tts-worker".
func NewFlite(command []string) *Flite {
	if command == nil {
		command = []string{executablePath(), "tts-worker"}
	}
	f := &Flite{command: command, textSlot: make(chan struct{}, 1)}
	f.textSlot <- struct{}{}
	return f
}

// Identity returns the name and version of the engine.
func (f *Flite) Identity() string { return "flite 2.2" }

// Ready starts the worker if it is not running, and returns a *transcript.MissingDependency if a library is missing.
func (f *Flite) Ready(ctx context.Context) error {
	if err := f.acquire(ctx); err != nil {
		return err
	}
	defer f.release()
	_, err := f.runningWorker(ctx)
	return err
}

// CheckLanguage returns an error for a language other than English.
func (f *Flite) CheckLanguage(language string) error {
	return requireLanguage("the builtin voice", "set SONIQ_VOICE to the URL of an OpenAI-compatible server", englishOnly, language)
}

// CheckText returns an error if a text cannot be spoken with a voice in a language.
func (f *Flite) CheckText(text, voice, language string) error {
	if err := f.CheckLanguage(language); err != nil {
		return err
	}
	if voice != "" && !slices.Contains(fliteVoices, voice) {
		return fmt.Errorf("%w %q; it has %s", ErrUnknownVoice, voice, strings.Join(fliteVoices, ", "))
	}
	if toASCII(text) == "" {
		return ErrNoSpeakableText
	}
	return nil
}

// Synthesize speaks a text and returns its samples and their rate. If flite hangs or fails on the text, the worker is
// ended.
func (f *Flite) Synthesize(ctx context.Context, text, voice, language string) ([]int16, int, error) {
	if err := f.CheckText(text, voice, language); err != nil {
		return nil, 0, err
	}
	if voice == "" {
		voice = fliteVoices[0]
	}
	plain := toASCII(text)
	if err := f.acquire(ctx); err != nil {
		return nil, 0, err
	}
	defer f.release()
	w, err := f.runningWorker(ctx)
	if err != nil {
		return nil, 0, err
	}
	pcm, rate, err := w.synthesize(ctx, fliteRequest{Text: plain, Voice: voice})
	if err != nil && !errors.As(err, new(workerError)) {
		f.stopWorker()
	}
	return pcm, rate, err
}

// workerError is an error that the worker itself reported; the worker continues to run.
type workerError struct{ error }

func (w *workerProcess) synthesize(ctx context.Context, u fliteRequest) (pcm []int16, rate int, err error) {
	var a fliteResponse
	err = w.within(ctx, func() (err error) {
		if err := writeMessage(w.in, u, nil); err != nil {
			return err
		}
		pcm, err = readMessage(w.out, &a)
		return err
	})
	switch {
	case err != nil:
		return nil, 0, fmt.Errorf("speak %d characters: %w", len(u.Text), err)
	case a.Missing != "":
		return nil, 0, workerError{&transcript.MissingDependency{Problem: a.Missing, Remedy: a.Help}}
	case a.Error != "":
		return nil, 0, workerError{errors.New(a.Error)}
	}
	return pcm, a.Rate, nil
}

func (f *Flite) acquire(ctx context.Context) error {
	select {
	case <-f.textSlot:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *Flite) release() { f.textSlot <- struct{}{} }

// runningWorker returns the worker and starts it if none runs. After a missing dependency it retries only after
// retryAfter.
func (f *Flite) runningWorker(ctx context.Context) (*workerProcess, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return nil, errors.New("the voice is closed")
	case f.worker != nil:
		f.idleTimer.Reset(defaultIdleTimeout)
		return f.worker, nil
	case f.startError != nil && time.Since(f.lastStart) < retryAfter:
		return nil, f.startError
	}
	ctx, cancel := context.WithTimeout(ctx, defaultStartTimeout)
	defer cancel()
	w, err := startWorker(ctx, exec.Command(f.command[0], f.command[1:]...))
	f.startError, f.lastStart = nil, time.Now()
	if err != nil {
		if _, ok := transcript.AsMissingDependency(err); ok {
			f.startError = err
		}
		return nil, err
	}
	f.worker, f.idleTimer = w, time.AfterFunc(defaultIdleTimeout, f.stopIdle)
	return w, nil
}

// stopIdle ends a worker without work.
func (f *Flite) stopIdle() {
	select {
	case <-f.textSlot:
		f.stopWorker()
		f.release()
	default: // the worker is busy; the next text resets the timer
	}
}

func (f *Flite) stopWorker() {
	f.mu.Lock()
	w := f.worker
	if f.worker = nil; w != nil {
		f.idleTimer.Stop()
	}
	f.mu.Unlock()
	if w != nil {
		w.stop()
	}
}

// Close ends the worker. Synthesize returns an error afterwards.
func (f *Flite) Close() error {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.stopWorker()
	return nil
}

// asciiReplacer replaces characters whose ASCII form Unicode decomposition does not give.
var asciiReplacer = strings.NewReplacer("’", "'", "‘", "'", "“", `"`, "”", `"`, "–", ", ", "—", ", ", "…", "...", "ß", "ss", "€", " euros ",
	"£", " pounds ", "æ", "ae", "ø", "o", "œ", "oe", "&", " and ", "\n", " ", "\t", " ")

// toASCII returns the part of a text that flite can read: letters lose their diacritics, characters without an ASCII
// form are dropped. It returns "" if no letter or digit is left.
func toASCII(text string) string {
	plain := strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII || r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, norm.NFKD.String(asciiReplacer.Replace(text)))
	if !strings.ContainsFunc(plain, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
		return ""
	}
	return strings.Join(strings.Fields(plain), " ")
}
