package ivr

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"soniq/internal/contactcenter/flow"
	"soniq/internal/contactcenter/queue"
	"soniq/internal/contactcenter/routing"
	"soniq/internal/platform/db"
	"soniq/internal/protocol/media/clip"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/number"
	"soniq/internal/telephony/pbx"
)

// Keys with which callers answer the callback offer.
const (
	acceptKey = "1"
	changeKey = "2"
)

// How long the flow waits for an answer to the callback offer, and how often it asks.
const (
	callbackKeyTimeout = 8 * time.Second
	callbackOfferTries = 2
)

// callback offers to call back. A caller who accepts keeps a position in the queue and is dialled when it is their
// turn.
func (w *flowRun) callback(ctx context.Context, x *flow.Callback) (outcome string) {
	w.setMissedReason("abandoned_in_menu")
	to, err := w.askCallbackNumber(ctx, x)
	switch {
	case err != nil:
		return routing.CallerGone
	case to == "":
		return "declined"
	}
	if err := w.enqueueCallback(ctx, x.QueueID, to); err != nil {
		if ctx.Err() != nil {
			return routing.CallerGone
		}
		w.problem = "no callback: " + err.Error()
		return "declined"
	}
	if w.sayOrBeep(ctx, "Thank you. We will call you back.") != nil {
		w.problem = "the caller hung up once they had accepted"
	}
	return "accepted"
}

// askCallbackNumber returns the number to call back. It returns "" if the caller declines.
func (w *flowRun) askCallbackNumber(ctx context.Context, x *flow.Callback) (to string, err error) {
	if to = w.v.Info().From; to == call.Anonymous {
		to = ""
	}
	for try := 0; try < callbackOfferTries && routing.CountStep(ctx); {
		if to == "" {
			if to, err = w.askOtherNumber(ctx); err != nil || to == "" {
				return "", err
			}
		}
		if err := w.sayOrBeep(ctx, callbackOffer(to, x.ConfirmNumber)); err != nil {
			return "", err
		}
		key, pressed, err := w.readKey(ctx, callbackKeyTimeout)
		switch {
		case err != nil:
			return "", err
		case key == acceptKey:
			return to, nil
		case key == changeKey && x.ConfirmNumber:
			to = ""
		case pressed:
			return "", nil
		}
		try++
	}
	return "", nil
}

// callbackOffer returns the text of the callback offer.
func callbackOffer(to string, confirm bool) string {
	if !confirm {
		return "If you want us to call you back, press 1."
	}
	return fmt.Sprintf("We can call you back at %s. To accept, press 1. To give another number, press 2.", spellDigits(to))
}

// spellDigits returns a number with spaces between its digits, so that it is read out digit by digit.
func spellDigits(number string) string {
	return strings.TrimSpace(strings.Join(strings.Split(strings.TrimPrefix(number, "+"), ""), " "))
}

// askOtherNumber asks for a number. It returns "" if the caller enters no valid number.
func (w *flowRun) askOtherNumber(ctx context.Context) (string, error) {
	if err := w.sayOrBeep(ctx, "Please enter the number, followed by the hash key."); err != nil {
		return "", err
	}
	digits, err := w.readDigits(ctx, 20, "#", callbackKeyTimeout)
	if err != nil {
		return "", err
	}
	if to, ok := number.Parse(digits, w.v.Info().Country); ok {
		return to, nil
	}
	return "", nil
}

// enqueueCallback puts the caller into the queue as a callback.
func (w *flowRun) enqueueCallback(ctx context.Context, id, to string) error {
	i := w.v.Info()
	ctx, cancel := w.writeContext(ctx)
	defer cancel()
	err := w.s.cfg.DB.TxRelaxedContext(ctx, func(ctx context.Context, tx db.Querier) error {
		_, err := w.s.cfg.Queues.EnterCallback(ctx, tx, queue.Caller{Org: w.org, QueueID: id, CallID: i.CallID, From: to},
			queue.CallbackRequest{To: to, From: routing.OwnNumber(i)})
		return err
	})
	switch {
	case errors.Is(err, queue.ErrFull), errors.Is(err, queue.ErrClosed), errors.Is(err, queue.ErrNoAgents):
		return err
	case err != nil:
		w.s.cfg.Log.Error("callback not stored", "call", i.CallID, "queue", id, "err", err)
		return errors.New("internal error")
	}
	return nil
}

// sayOrBeep speaks a text, or plays a beep if there is no text to speech.
func (w *flowRun) sayOrBeep(ctx context.Context, text string) error {
	clip, err := w.promptClip(ctx, flow.Prompt{Text: text})
	if err != nil {
		if errors.Is(err, pbx.ErrGone) || ctx.Err() != nil {
			return pbx.ErrGone
		}
		clip = routing.Beep()
	}
	return w.playInterruptible(ctx, clip)
}

func (w *flowRun) playInterruptible(ctx context.Context, clip *clip.Clip) error {
	return w.v.Play(ctx, clip, pbx.PlayOptions{Keys: true})
}
