package engine

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
	command []string
	turn    chan struct{} // holds one token: one text at a time

	mu      sync.Mutex // guards the fields below
	worker  *sphinxWorker
	rest    *time.Timer
	missing error
	tried   time.Time
	closed  bool
}

// NewFlite returns the synthesiser. command starts a worker; nil means this binary with the argument "tts-worker".
func NewFlite(command []string) *Flite {
	if command == nil {
		command = []string{self(), "tts-worker"}
	}
	f := &Flite{command: command, turn: make(chan struct{}, 1)}
	f.turn <- struct{}{}
	return f
}

// Identity returns the name and version of the engine.
func (f *Flite) Identity() string { return "flite 2.2" }

// Ready starts the worker if it is not running, and returns a *transcript.MissingDependency if a library is missing.
func (f *Flite) Ready(ctx context.Context) error {
	if err := f.take(ctx); err != nil {
		return err
	}
	defer f.give()
	_, err := f.running(ctx)
	return err
}

// Synthesize speaks a text and returns its samples and their rate. If flite hangs or fails on the text, the worker is
// ended.
func (f *Flite) Say(ctx context.Context, text, voice, language string) ([]int16, int, error) {
	if language != "" && !strings.HasPrefix(strings.ToLower(language), "en") {
		return nil, 0, &transcript.Missing{What: "the builtin voice speaks English only, not " + language,
			Help: "set SONIQ_VOICE to the URL of an OpenAI-compatible server"}
	}
	if voice == "" {
		voice = fliteVoices[0]
	}
	if !slices.Contains(fliteVoices, voice) {
		return nil, 0, fmt.Errorf("%w %q; it has %s", ErrUnknownVoice, voice, strings.Join(fliteVoices, ", "))
	}
	plain := ascii(text)
	if plain == "" {
		return nil, 0, ErrNothing
	}
	if err := f.take(ctx); err != nil {
		return nil, 0, err
	}
	defer f.give()
	w, err := f.running(ctx)
	if err != nil {
		return nil, 0, err
	}
	pcm, rate, err := w.say(ctx, utterance{Text: plain, Voice: voice})
	if err != nil && !errors.As(err, new(complained)) {
		f.drop()
	}
	return pcm, rate, err
}

// workerError is an error that the worker itself reported; the worker continues to run.
type complained struct{ error }

func (w *sphinxWorker) say(ctx context.Context, u utterance) (pcm []int16, rate int, err error) {
	var a sayAnswer
	err = w.within(ctx, func() (err error) {
		if err := send(w.in, u, nil); err != nil {
			return err
		}
		pcm, err = receive(w.out, &a)
		return err
	})
	switch {
	case err != nil:
		return nil, 0, fmt.Errorf("speak %d characters: %w", len(u.Text), err)
	case a.Missing != "":
		return nil, 0, complained{&transcript.Missing{What: a.Missing, Help: a.Help}}
	case a.Error != "":
		return nil, 0, complained{errors.New(a.Error)}
	}
	return pcm, a.Rate, nil
}

func (f *Flite) take(ctx context.Context) error {
	select {
	case <-f.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *Flite) give() { f.turn <- struct{}{} }

// runningWorker returns the worker and starts it if none runs. After a missing dependency it retries only after
// retryAfter.
func (f *Flite) running(ctx context.Context) (*sphinxWorker, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return nil, errors.New("the voice is closed")
	case f.worker != nil:
		f.rest.Reset(idleLimit)
		return f.worker, nil
	case f.missing != nil && time.Since(f.tried) < retryAfter:
		return nil, f.missing
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	w, err := startWorker(ctx, exec.Command(f.command[0], f.command[1:]...))
	f.missing, f.tried = nil, time.Now()
	if err != nil {
		if _, ok := transcript.IsMissing(err); ok {
			f.missing = err
		}
		return nil, err
	}
	f.worker, f.rest = w, time.AfterFunc(idleLimit, f.idle)
	return w, nil
}

// stopIdle ends a worker without work.
func (f *Flite) idle() {
	select {
	case <-f.turn:
		f.drop()
		f.give()
	default: // the worker is busy; the next text resets the timer
	}
}

func (f *Flite) drop() {
	f.mu.Lock()
	w := f.worker
	if f.worker = nil; w != nil {
		f.rest.Stop()
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
	f.drop()
	return nil
}

// asciiReplacer replaces characters whose ASCII form Unicode decomposition does not give.
var typographic = strings.NewReplacer("’", "'", "‘", "'", "“", `"`, "”", `"`, "–", ", ", "—", ", ", "…", "...", "ß", "ss", "€", " euros ",
	"£", " pounds ", "æ", "ae", "ø", "o", "œ", "oe", "&", " and ", "\n", " ", "\t", " ")

// toASCII returns the part of a text that flite can read: letters lose their diacritics, characters without an ASCII
// form are dropped. It returns "" if no letter or digit is left.
func ascii(text string) string {
	plain := strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII || r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, norm.NFKD.String(typographic.Replace(text)))
	if !strings.ContainsFunc(plain, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
		return ""
	}
	return strings.Join(strings.Fields(plain), " ")
}
