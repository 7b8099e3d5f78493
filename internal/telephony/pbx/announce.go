package pbx

import (
	"context"
	"time"

	"soniq/internal/platform/op"
	"soniq/internal/protocol/media"
	"soniq/internal/telephony/call"
)

// loadTimeout bounds making or loading a prompt.
const loadTimeout = 20 * time.Second

// Speaker turns text into audio. Package engine implements it.
type Speaker interface {
	// File returns an audio file that says the text; it is made once and kept.
	File(ctx context.Context, org, text, voice, language string) (path string, err error)
	// Ready says why nothing can be spoken; nil where it can.
	Ready(ctx context.Context) error
}

// Audio finds audio files of organisations.
type Audio interface {
	Path(ctx context.Context, org, id string) (path string, err error)
}

// clip loads an audio file of the organisation.
func (s *Switch) clip(ctx context.Context, org, id string) (*media.Clip, error) {
	if s.Audio == nil {
		return nil, op.Invalid(op.Field("audio_id", "not_found", "there is no such audio"))
	}
	path, err := s.Audio.Path(ctx, org, id)
	if err != nil {
		return nil, err
	}
	return media.LoadClip(path)
}

// say makes a clip of a text.
func (s *Switch) say(ctx context.Context, org, text, voice string) (*media.Clip, error) {
	return s.spoken(ctx, org, text, voice, "")
}

// spoken makes a clip of a text in a language; "" for the engine's own.
func (s *Switch) spoken(ctx context.Context, org, text, voice, language string) (*media.Clip, error) {
	if s.Speaker == nil {
		return nil, op.Fail("not_enabled", "no engine for speech is set up; soniq doctor tells what is missing")
	}
	path, err := s.Speaker.File(ctx, org, text, voice, language)
	if err != nil {
		return nil, err
	}
	return media.LoadClip(path)
}

// announce plays a prompt to one side or all. It is confirmed when it begins to play.
func (c *liveCall) announce(_ context.Context, x call.Announce, done reply) {
	if !c.connectedNow() {
		done.state(c, "the call is not connected")
		return
	}
	if c.forHelp() {
		done.state(c, "nothing is played into an emergency call")
		return
	}
	org := c.new.Org
	c.aside(loadTimeout, func(ctx context.Context) func(context.Context) {
		var clip *media.Clip
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

func (c *liveCall) play(clip *media.Clip, x call.Announce, done reply) {
	for _, l := range c.audience(x.To) {
		c.prompt(l, clip, x.Interrupt)
	}
	c.step("announcement", nil, detail{"to": x.To})
	done.ok()
}

// audience are the legs an announcement is for.
func (c *liveCall) audience(to string) []*leg {
	switch to {
	case "caller":
		return []*leg{c.far()}
	case "agent":
		return []*leg{c.near()}
	}
	return c.talking()
}

// prompt plays a clip once; what the leg heard before goes on after it. Unless it may interrupt, it waits for its turn.
func (c *liveCall) prompt(l *leg, clip *media.Clip, interrupt bool) {
	if !l.up() || l.clip != nil || c.forHelp() {
		return
	}
	if l.playback == nil || interrupt || finished(l.playback) {
		l.playback = l.stream.Play(clip, media.PlayOptions{})
		return
	}
	last := l.playback
	c.aside(promptTurn, func(ctx context.Context) func(context.Context) {
		select {
		case <-last.Done():
			return func(context.Context) { c.prompt(l, clip, false) }
		case <-ctx.Done():
			return nil
		}
	})
}

// promptTurn is the longest a prompt waits for another to end.
const promptTurn = 5 * time.Minute

func finished(p *media.Playback) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

// recordedText is what is said before a recording begins.
const recordedText = "This call is recorded."

// announceRecording tells both sides that the call is recorded: in words where an engine can speak, else by a tone. Then it goes on.
func (c *liveCall) announceRecording(next func(ctx context.Context)) {
	org := c.new.Org
	c.aside(loadTimeout, func(ctx context.Context) func(context.Context) {
		clip, err := c.sw.say(ctx, org, recordedText, "")
		if err != nil {
			clip = recordingTone()
		}
		return func(context.Context) {
			for _, l := range c.talking() {
				c.prompt(l, clip, true)
			}
			c.step("recording.announced", nil, nil)
			c.limit(clip.Duration(), next)
		}
	})
}

// recordingTone stands for the words where nothing can speak them.
func recordingTone() *media.Clip {
	return media.NewClip(media.Tone(1400, -12, 400*time.Millisecond, 8000), 8000)
}
