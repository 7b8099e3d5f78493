package pbx

import (
	"context"
	"errors"
	"time"

	"soniq/internal/protocol/media"
	"soniq/internal/protocol/sip"
)

// watch looks after a leg that falls silent: telephones that lost their network hang up nothing. A leg that sends nothing may
// still be there (one way audio, silence suppression), so its dialog is asked; who does not answer is gone.
func (c *liveCall) watch(l *leg) {
	c.hearDigits(l)
	l.stream.OnSilence(c.sw.MediaTimeout, func() {
		c := l.owner.Load()
		c.inbox.push(message{run: func(ctx context.Context) { c.silent(l) }})
	})
}

func (c *liveCall) silent(l *leg) {
	if !l.up() || l.busy || c.done || l.owner.Load() != c || c.forHelp() { // who calls for help may have to keep silent
		return
	}
	c.step("media.silent", l, detail{"seconds": int(c.sw.MediaTimeout / time.Second)})
	l.probed = true
	c.ask(l, l.session.Ours(), func(_ context.Context, _ media.Description, err error) {
		c.probed(l, err)
	})
}

// probed takes the answer of who was asked. Where none came yet the question stands: signalling tells when it gives up.
func (c *liveCall) probed(l *leg, err error) {
	var refused *sip.StatusError
	switch {
	case err == nil:
		l.apply()
		c.step("media.silent_but_there", l, nil)
	case errors.Is(err, context.DeadlineExceeded):
		return
	case errors.As(err, &refused) && refused.Unsent:
		l.sip.Abandon("it sends nothing and cannot be reached")
		return
	}
	l.probed = false
}
