package pbx

import (
	"context"
	"time"

	"soniq/internal/platform/op"
	"soniq/internal/protocol/media"
	"soniq/internal/protocol/media/clip"
	"soniq/internal/protocol/media/dsp"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx/notice"
)

// loadTimeout limits the time to synthesise or load a prompt.
const loadTimeout = 20 * time.Second

// Speaker turns text into audio. Package engine implements it.
type Speaker interface {
	// File returns the path of an audio file with the spoken text. The file is synthesised once and cached.
	File(ctx context.Context, org, text, voice, language string) (path string, err error)
	// Ready returns an error with the reason if speech synthesis is not available, nil otherwise.
	Ready(ctx context.Context) error
}

// Audio finds the audio files of organisations.
type Audio interface {
	Path(ctx context.Context, org, id string) (path string, err error)
}

// clip loads an audio file of the organisation.
func (s *Switch) clip(ctx context.Context, org, id string) (*clip.Clip, error) {
	if s.cfg.Audio == nil {
		return nil, op.Invalid(op.Field("audio_id", "not_found", "there is no such audio"))
	}
	path, err := s.cfg.Audio.Path(ctx, org, id)
	if err != nil {
		return nil, err
	}
	return clip.Load(path)
}

// say returns a clip with the spoken text.
func (s *Switch) say(ctx context.Context, org, text, voice string) (*clip.Clip, error) {
	return s.synthesize(ctx, org, text, voice, "")
}

// synthesize returns a clip with the text spoken in a language. An empty language is the engine's default.
func (s *Switch) synthesize(ctx context.Context, org, text, voice, language string) (*clip.Clip, error) {
	if s.cfg.Speaker == nil {
		return nil, op.Fail("not_enabled", "no engine for speech is set up; soniq doctor tells what is missing")
	}
	path, err := s.cfg.Speaker.File(ctx, org, text, voice, language)
	if err != nil {
		return nil, err
	}
	return clip.Load(path)
}

// announce plays a prompt to one side or to all. The command is confirmed when the prompt begins to play.
func (c *liveCall) announce(_ context.Context, x call.Announce, done commandReply) {
	if !c.connectedNow() {
		done.state(c, "the call is not connected")
		return
	}
	if c.isEmergency() {
		done.state(c, "nothing is played into an emergency call")
		return
	}
	org := c.new.Org
	c.runAsync(loadTimeout, func(ctx context.Context) func(context.Context) {
		var clip *clip.Clip
		var err error
		if x.AudioID != "" {
			clip, err = c.sw.clip(ctx, org, x.AudioID)
		} else {
			clip, err = c.sw.say(ctx, org, x.Text, x.Voice)
		}
		return func(context.Context) {
			if err != nil {
				done.fail(err)
				return
			}
			c.play(clip, x, done)
		}
	})
}

func (c *liveCall) play(clip *clip.Clip, x call.Announce, done commandReply) {
	for _, l := range c.audience(x.To) {
		c.prompt(l, clip, x.Interrupt)
	}
	c.addEntry("announcement.played", nil, detail{"to": x.To})
	done.ok()
}

// audience returns the legs that hear an announcement.
func (c *liveCall) audience(to string) []*leg {
	switch to {
	case "caller":
		return []*leg{c.far()}
	case "agent":
		return []*leg{c.near()}
	}
	return c.talking()
}

// prompt plays a clip once, then continues with the clip that the leg heard before. If interrupt is false, it waits
// for the prompt that is playing.
func (c *liveCall) prompt(l *leg, clip *clip.Clip, interrupt bool) {
	if !l.up() || l.loopClip != nil || c.isEmergency() {
		return
	}
	if l.playback == nil || interrupt || finished(l.playback) {
		l.playback = l.stream.Play(clip, media.PlayOptions{})
		return
	}
	last := l.playback
	c.runAsync(promptTurn, func(ctx context.Context) func(context.Context) {
		select {
		case <-last.Done():
			return func(context.Context) { c.prompt(l, clip, false) }
		case <-ctx.Done():
			return nil
		}
	})
}

// promptTurn is the longest time that a prompt waits for another one to end.
const promptTurn = 5 * time.Minute

func finished(p *media.Playback) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

// announceRecording plays a notice to both sides that the call is recorded, then calls next.
func (c *liveCall) announceRecording(next func(ctx context.Context)) {
	org, p := c.new.Org, c.policy
	c.runAsync(loadTimeout, func(ctx context.Context) func(context.Context) {
		clip := c.sw.recordingNotice(ctx, org, p)
		return func(context.Context) {
			for _, l := range c.talking() {
				c.prompt(l, clip, true)
			}
			c.addEntry("recording.announced", nil, nil)
			c.afterWhileActive(clip.Duration(), next)
		}
	})
}

// noticeRequired reports whether no recording may begin without a notice.
func (p Policy) noticeRequired() bool { return p.Notice != nil && p.Notice.Required }

// recordingNotice returns the notice of an organisation: its audio, its text or the standard text in its language, the
// English text, or a tone if nothing can be spoken.
func (s *Switch) recordingNotice(ctx context.Context, org string, p Policy) *clip.Clip {
	n := p.Notice
	if n == nil {
		n = &RecordingNotice{}
	}
	if n.Audio != "" {
		if c, err := s.clip(ctx, org, n.Audio); err == nil {
			return c
		}
		s.cfg.Log.Warn("audio of the recording notice not found; the text is spoken", "org", org, "audio", n.Audio)
	}
	for _, x := range notice.Texts(n.Text, n.Language) {
		if c, err := s.synthesize(ctx, org, x.Text, "", x.Language); err == nil {
			return c
		}
	}
	return recordingTone()
}

// recordingTone returns the tone that replaces the spoken notice if no speech engine is available.
func recordingTone() *clip.Clip {
	return clip.New(dsp.Tone(1400, -12, 400*time.Millisecond, 8000), 8000)
}

// connectAnnouncement is spoken to the answering party of a placed call before it is connected. It is synthesised
// while the phone rings.
type connectAnnouncement struct {
	clip    *clip.Clip
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
	case s.cfg.Speaker == nil:
		return op.Fail("not_enabled", "no engine for speech is set up; soniq doctor tells what is missing")
	}
	return s.cfg.Speaker.Ready(ctx)
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
			c.sw.cfg.Log.Warn("announcement not played", "call", c.id, "org", c.new.Org, "err", w.err)
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
