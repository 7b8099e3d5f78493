package pbx

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"soniq/internal/protocol/media/clip"
	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/dsp"
	"soniq/internal/protocol/media/record"
	"soniq/internal/telephony/pbx/answermachine"
	"soniq/internal/telephony/pbx/progresstone"
)

// Recording of voicemail and other messages from a scripted call.

// MessageOptions holds the options of Record.
type MessageOptions struct {
	Path    string        // file, complete or not present; Path.part during the recording
	Max     time.Duration // the longest message
	Silence time.Duration // silence of the caller that ends the message; 0: no limit
	EndKeys string        // keys that end it, such as "#"
	Beep    bool          // play a tone first
}

// RecordedMessage is a recorded message.
type RecordedMessage struct {
	Path      string
	Duration  time.Duration
	Speech    time.Duration // speech of the caller, without silence
	Size      int64
	SHA256    string // hex
	EndedBy   string // key, silence, max, hangup, or error: the file could not be written any more
	Key       rune   // the key, if EndedBy is key
	Truncated bool   // the end is missing, because it could not be written
}

// ErrNotStored is returned by Record if the file could not be written or finished, for example because the disk is
// full. The part that was written stays in Path.part. record.Recover completes it.
var ErrNotStored = errors.New("the message could not be written")

// beepTone returns the tone before a message.
func beepTone() *clip.Clip {
	return clip.New(dsp.Tone(1000, -12, 400*time.Millisecond, 8000), 8000)
}

// Record records the caller until a key, silence, the longest time or a hang-up. After a hang-up the error is ErrGone
// and the message is returned as well. Any other recording of the call stops. If the file cannot be written, the
// recording ends at once. The message is then Truncated, or the error is ErrNotStored and only Speech is set.
func (v *ScriptedCall) Record(ctx context.Context, o MessageOptions) (RecordedMessage, error) {
	if err := v.Answer(ctx); err != nil {
		return RecordedMessage{}, err
	}
	if o.Beep {
		if err := v.Play(ctx, beepTone(), PlayOptions{}); err != nil {
			return RecordedMessage{}, err
		}
		v.DiscardKeys()
	}
	failing := make(chan struct{})
	r, err := v.openRecorder(ctx, o, failing)
	if err != nil {
		return RecordedMessage{}, err
	}
	done := RecordedMessage{Path: o.Path}
	ear := &speechMeter{}
	v.leg.stream.OnAudio(ear.feed)
	done.EndedBy, done.Key = v.awaitMessageEnd(ctx, o, ear, failing)
	v.leg.stream.OnAudio(nil)
	ear.end()
	r.Stop()
	err = v.do(ctx, func(context.Context) error { return nil }) // the caller may have hung up at this moment
	if err != nil {
		done.EndedBy = "hangup"
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	result, failed := r.Close(closing)
	done.Speech = time.Duration(ear.speech.Load())
	if result.SHA256 == "" && failed != nil {
		return RecordedMessage{Speech: done.Speech}, fmt.Errorf("%w: %w", ErrNotStored, failed)
	}
	done.Duration, done.Size, done.SHA256, done.Truncated = result.Duration, result.Size, result.SHA256, failed != nil
	return done, err
}

// openRecorder starts the file. The end of the call waits until the script has stored the message. The recorder closes
// failing if it cannot write any more.
func (v *ScriptedCall) openRecorder(ctx context.Context, o MessageOptions, failing chan<- struct{}) (r *record.Recorder, err error) {
	err = v.do(ctx, func(ctx context.Context) error {
		c := v.c
		if c.recording != nil {
			c.stopRecording(ctx, commandReply{})
		}
		cfg := record.Config{Path: o.Path, Left: v.leg.stream.Recordable(), Codec: codec.PCMU, Wideband: v.leg.codec() > codec.PCMA,
			Mono: true, OnError: func(err error) {
				c.sw.cfg.Log.Error("message cut short", "call", c.id, "org", c.new.Org, "err", err)
				close(failing)
			}}
		if v.leg.codec() == codec.PCMA {
			cfg.Codec = codec.PCMA
		}
		var failed error
		if r, failed = c.sw.cfg.Media.Record(cfg); failed != nil {
			return fmt.Errorf("%w: %w", ErrNotStored, failed)
		}
		v.recordingMessage.Store(true)
		c.addEntry("message.started", v.leg, nil)
		return nil
	})
	return r, err
}

// awaitMessageEnd waits for the end of a message and returns its cause.
func (v *ScriptedCall) awaitMessageEnd(ctx context.Context, o MessageOptions, ear *speechMeter, failing <-chan struct{}) (by string,
	key rune) {
	longest := time.NewTimer(o.Max)
	defer longest.Stop()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	ear.spoke.Store(time.Now().UnixNano())
	for {
		if d, ok := v.keys.Take(); ok {
			if strings.ContainsRune(o.EndKeys, d) {
				return "key", d
			}
			continue
		}
		select {
		case <-v.keys.Readable():
		case <-longest.C:
			return "max", 0
		case <-failing:
			return "error", 0
		case <-look.C:
			if o.Silence > 0 && time.Since(time.Unix(0, ear.spoke.Load())) >= o.Silence {
				return "silence", 0
			}
		case <-ctx.Done():
			return "hangup", 0
		case <-v.ctx.Done():
			return "hangup", 0
		}
	}
}

// speechMeter measures the speech of a caller, without the tones of the network. The stream's goroutine feeds it.
type speechMeter struct {
	spoke  atomic.Int64 // time of the last speech
	speech atomic.Int64 // total duration of speech

	mu    sync.Mutex // guards the fields below
	tones progresstone.Detector
	gap   time.Duration
}

// wordGap is the longest silence between words of continuous speech.
const wordGap = 400 * time.Millisecond

func (e *speechMeter) feed(pcm []int16) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if answermachine.IsLoud(pcm) {
		e.add(e.tones.Feed(pcm))
		return
	}
	e.add(e.tones.Pause())
	e.gap += time.Duration(len(pcm)) * time.Second / 8000
}

// end counts what was not decided yet.
func (e *speechMeter) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.add(e.tones.Pause())
}

// add counts speech, with a short gap before it, and the time of tones as a gap. e.mu must be held.
func (e *speechMeter) add(speech, tone time.Duration) {
	if speech > 0 {
		if e.gap <= wordGap && e.speech.Load() > 0 {
			speech += e.gap
		}
		e.gap = 0
		e.speech.Add(int64(speech))
		e.spoke.Store(time.Now().UnixNano())
	}
	e.gap += tone
}

// LeftMessage records that a message of the caller was stored. An unanswered call is then missed with reason
// voicemail, and its record names the message.
func (v *ScriptedCall) LeftMessage() { v.leftMessage.Store(true) }

// messageWait limits the wait of a call's end for a message to be stored.
const messageWait = 10 * time.Second

// awaitMessages waits until messages are stored, because the call's record refers to them.
func (c *liveCall) awaitMessages() {
	limit := time.NewTimer(messageWait)
	defer limit.Stop()
	for _, v := range c.allScripted {
		if !v.recordingMessage.Load() {
			continue
		}
		select {
		case <-v.done:
		case <-limit.C:
			c.sw.cfg.Log.Warn("message not stored before the end of the call", "call", c.id, "org", c.new.Org)
			return
		}
	}
	for _, v := range c.allScripted {
		if v.leftMessage.Load() {
			c.outcome.Missed = "voicemail"
		}
	}
}
