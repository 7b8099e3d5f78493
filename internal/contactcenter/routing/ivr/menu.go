package ivr

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"soniq/internal/contactcenter/flow"
	"soniq/internal/contactcenter/routing"
	"soniq/internal/telephony/pbx"
)

// menu plays the prompt and waits for a key, and repeats both as often as the node says. Each repetition counts as a
// step.
func (w *flowRun) menu(ctx context.Context, x *flow.Menu) (outcome string) {
	w.setMissedReason("abandoned_in_menu")
	for try := 0; ; try++ {
		if err := w.playPrompt(ctx, x.Prompt, true); err != nil {
			return routing.CallerGone
		}
		key, pressed, err := w.keyOrPhrase(ctx, x)
		if err != nil {
			return routing.CallerGone
		}
		if _, known := x.Digits[key]; pressed && known {
			return key
		}
		if try >= x.Retries || !routing.CountStep(ctx) {
			if pressed {
				return "invalid"
			}
			return "timeout"
		}
		w.v.DiscardKeys()
	}
}

// keyOrPhrase waits for a key, or until the caller says one of the labels.
func (w *flowRun) keyOrPhrase(ctx context.Context, x *flow.Menu) (key string, ok bool, err error) {
	wait := time.Duration(x.Timeout) * time.Second
	if !x.Speech || w.s.cfg.Recognizer == nil {
		return w.readKey(ctx, wait)
	}
	heard, cancel := context.WithTimeout(ctx, wait) // speech that began before the timeout is still recognised
	defer cancel()
	keys, spoke := context.WithCancel(ctx)
	defer spoke()
	pcm, stop, err := w.v.Listen(ctx)
	if err != nil {
		return "", false, err
	}
	defer stop()
	digits := slices.Sorted(maps.Keys(x.Digits))
	said := make(chan string, 1)
	go func() {
		defer close(said)
		if i, ok := w.s.cfg.Recognizer.Recognize(heard, labels(x, digits), w.languageOf(x.Prompt), pcm); ok && i >= 0 && i < len(digits) {
			said <- digits[i]
			spoke() // after speech, stop waiting for a key
		}
	}()
	if key, ok, err = w.readKey(keys, wait); ok || ctx.Err() != nil {
		return key, ok, err
	}
	select {
	case key, ok = <-said:
		return key, ok, nil
	case <-ctx.Done():
		return "", false, pbx.ErrGone
	}
}

// labels returns the labels of the digits, which are the phrases to recognise.
func labels(x *flow.Menu, digits []string) []string {
	all := make([]string, len(digits))
	for i, d := range digits {
		all[i] = x.Digits[d]
	}
	return all
}

func (w *flowRun) readKey(ctx context.Context, wait time.Duration) (key string, ok bool, err error) {
	r, ok, err := w.v.ReadKey(ctx, wait)
	return string(r), ok, err
}

// collect waits for digits and stores them in a variable.
func (w *flowRun) collect(ctx context.Context, x *flow.Collect) (outcome string) {
	w.setMissedReason("abandoned_in_menu")
	if x.Mask {
		w.flowContext.Masked[x.Variable] = true
	}
	if err := w.playPrompt(ctx, x.Prompt, true); err != nil {
		return routing.CallerGone
	}
	digits, err := w.readDigits(ctx, x.Max, x.Terminator, time.Duration(x.Timeout)*time.Second)
	if err != nil {
		return routing.CallerGone
	}
	if len(digits) < x.Min {
		return "timeout"
	}
	w.flowContext.Variables[x.Variable] = digits
	return "done"
}

// readDigits reads keys until the maximum number, the terminator, or no key within wait. A terminator directly after the maximum
// number belongs to the input too.
func (w *flowRun) readDigits(ctx context.Context, most int, terminator string, wait time.Duration) (string, error) {
	var b strings.Builder
	for b.Len() < most {
		key, ok, err := w.readKey(ctx, wait)
		if err != nil {
			return "", err
		}
		if !ok || key == terminator {
			return b.String(), nil
		}
		b.WriteString(key)
	}
	for _, r := range terminator {
		w.v.EndInput(r)
	}
	return b.String(), nil
}
