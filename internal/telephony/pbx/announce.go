package pbx

import (
	"context"
	"time"

	"soniq/internal/platform/op"
	"soniq/internal/protocol/media"
	"soniq/internal/telephony/call"
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

// say returns a clip with the spoken text.
func (s *Switch) say(ctx context.Context, org, text, voice string) (*media.Clip, error) {
	return s.synthesize(ctx, org, text, voice, "")
}

// synthesize returns a clip with the text spoken in a language. An empty language is the engine's default.
func (s *Switch) synthesize(ctx context.Context, org, text, voice, language string) (*media.Clip, error) {
	if s.Speaker == nil {
		return nil, op.Fail("not_enabled", "no engine for speech is set up; soniq doctor tells what is missing")
	}
	path, err := s.Speaker.File(ctx, org, text, voice, language)
	if err != nil {
		return nil, err
	}
	return media.LoadClip(path)
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

func (c *liveCall) play(clip *media.Clip, x call.Announce, done commandReply) {
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
func (c *liveCall) prompt(l *leg, clip *media.Clip, interrupt bool) {
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

// recordedText is spoken before a recording begins.
const recordedText = "This call is recorded."

// announceRecording plays a notice to both sides that the call is recorded, then calls next. It is a tone if no
// speech engine is available.
func (c *liveCall) announceRecording(next func(ctx context.Context)) {
	org := c.new.Org
	c.runAsync(loadTimeout, func(ctx context.Context) func(context.Context) {
		clip, err := c.sw.say(ctx, org, recordedText, "")
		if err != nil {
			clip = recordingTone()
		}
		return func(context.Context) {
			for _, l := range c.talking() {
				c.prompt(l, clip, true)
			}
			c.addEntry("recording.announced", nil, nil)
			c.afterWhileActive(clip.Duration(), next)
		}
	})
}

// recordingTone returns the tone that replaces the spoken notice if no speech engine is available.
func recordingTone() *media.Clip {
	return media.NewClip(media.Tone(1400, -12, 400*time.Millisecond, 8000), 8000)
}
