package pbx

import (
	"context"

	"soniq/internal/platform/op"
	"soniq/internal/protocol/media"
	"soniq/internal/telephony/call"
)

// connectAnnouncement is spoken to the answering party of a placed call before it is connected. It is synthesised
// while the phone rings.
type connectAnnouncement struct {
	clip    *media.Clip
	err     error
	ready   bool
	onReady func(ctx context.Context) // runs when the clip is ready; nil: nothing waits
	played  bool
}

// checkSpeech refuses a call with an announcement if speech synthesis is not available.
func (s *Switch) checkSpeech(ctx context.Context, p call.Placement) error {
	switch {
	case p.Announce == "":
		return nil
	case s.Speaker == nil:
		return op.Fail("not_enabled", "no engine for speech is set up; soniq doctor tells what is missing")
	}
	return s.Speaker.Ready(ctx)
}

// prepareAnnouncement starts the synthesis of the announcement.
func (c *liveCall) prepareAnnouncement(text string) {
	if text == "" {
		return
	}
	w := &connectAnnouncement{}
	c.announcement = w
	org := c.new.Org
	c.runAsync(loadTimeout, func(ctx context.Context) func(context.Context) {
		clip, err := c.sw.say(ctx, org, text, "")
		return func(ctx context.Context) {
			w.clip, w.err, w.ready = clip, err, true
			if w.onReady != nil {
				w.onReady(ctx)
			}
		}
	})
}

// isPending reports whether the answering party is not connected yet because of the announcement.
func (w *connectAnnouncement) isPending() bool { return w != nil && !w.played }

// playBeforeConnect plays the announcement to the answering party, then calls next. A failed announcement is skipped.
func (c *liveCall) playBeforeConnect(ctx context.Context, l *leg, next func(ctx context.Context)) {
	w := c.announcement
	if !w.isPending() {
		next(ctx)
		return
	}
	w.onReady = func(ctx context.Context) {
		switch {
		case c.done:
			return
		case w.err == nil && l.up():
			c.playAnnouncement(l, w, next)
			return
		case w.err != nil:
			c.sw.Log.Warn("announcement not played", "call", c.id, "org", c.new.Org, "err", w.err)
			c.addEntry("announcement.failed", l, detail{"err": w.err.Error()})
		}
		w.played = true
		next(ctx)
	}
	if w.ready {
		w.onReady(ctx)
	}
}

func (c *liveCall) playAnnouncement(l *leg, w *connectAnnouncement, next func(ctx context.Context)) {
	playback := l.stream.Play(w.clip, media.PlayOptions{})
	l.playback = playback
	c.addEntry("announcement.played", l, nil)
	c.runAsync(w.clip.Duration()+loadTimeout, func(ctx context.Context) func(context.Context) {
		select {
		case <-playback.Done():
		case <-ctx.Done():
		}
		return func(ctx context.Context) {
			if w.played = true; !c.done {
				next(ctx)
			}
		}
	})
}
