package pbx

import (
	"context"

	"soniq/internal/platform/op"
	"soniq/internal/protocol/media"
	"soniq/internal/telephony/call"
)

// connectAnnouncement is spoken to the answering party of a placed call before it is connected. It is synthesised
// while the phone rings.
type words struct {
	clip *media.Clip
	err  error
	made bool
	then func(ctx context.Context) // runs when the clip is ready; nil: nothing waits
	said bool
}

// checkSpeech refuses a call with an announcement if speech synthesis is not available.
func (s *Switch) maySpeak(ctx context.Context, p call.Placement) error {
	switch {
	case p.Announce == "":
		return nil
	case s.Speaker == nil:
		return op.Fail("not_enabled", "no engine for speech is set up; soniq doctor tells what is missing")
	}
	return s.Speaker.Ready(ctx)
}

// prepareAnnouncement starts the synthesis of the announcement.
func (c *liveCall) makeWords(text string) {
	if text == "" {
		return
	}
	w := &words{}
	c.words = w
	org := c.new.Org
	c.aside(loadTimeout, func(ctx context.Context) func(context.Context) {
		clip, err := c.sw.say(ctx, org, text, "")
		return func(ctx context.Context) {
			w.clip, w.err, w.made = clip, err, true
			if w.then != nil {
				w.then(ctx)
			}
		}
	})
}

// isPending reports whether the answering party is not connected yet because of the announcement.
func (w *words) holdsBack() bool { return w != nil && !w.said }

// playBeforeConnect plays the announcement to the answering party, then calls next. A failed announcement is skipped.
func (c *liveCall) tellFirst(ctx context.Context, l *leg, next func(ctx context.Context)) {
	w := c.words
	if !w.holdsBack() {
		next(ctx)
		return
	}
	w.then = func(ctx context.Context) {
		switch {
		case c.done:
			return
		case w.err == nil && l.up():
			c.sayFirst(l, w, next)
			return
		case w.err != nil:
			c.sw.Log.Warn("announcement not played", "call", c.id, "org", c.new.Org, "err", w.err)
			c.step("announcement.failed", l, detail{"err": w.err.Error()})
		}
		w.said = true
		next(ctx)
	}
	if w.made {
		w.then(ctx)
	}
}

func (c *liveCall) sayFirst(l *leg, w *words, next func(ctx context.Context)) {
	playback := l.stream.Play(w.clip, media.PlayOptions{})
	l.playback = playback
	c.step("announcement", l, nil)
	c.aside(w.clip.Duration()+loadTimeout, func(ctx context.Context) func(context.Context) {
		select {
		case <-playback.Done():
		case <-ctx.Done():
		}
		return func(ctx context.Context) {
			if w.said = true; !c.done {
				next(ctx)
			}
		}
	})
}
