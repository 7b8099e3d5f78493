package pbx

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"soniq/internal/protocol/media"
)

// This file takes down what a caller who is led has to say.

// Recording says how a message is taken.
type Recording struct {
	Path    string        // of the file, which appears whole or not at all; Path.part while it is taken
	Max     time.Duration // the longest message
	Silence time.Duration // of the caller, after which the message is over; 0: none is too long
	EndKeys string        // keys that end it, such as "#"
	Beep    bool          // a tone before it
}

// Recorded is a message that was taken.
type Recorded struct {
	Path     string
	Duration time.Duration
	Speech   time.Duration // of it, without what was silent
	Size     int64
	SHA256   string // hex
	EndedBy  string // key, silence, max or hangup
	Key      rune   // of key
}

// beepTone is what callers hear before they speak.
func beepTone() *media.Clip {
	return media.NewClip(media.Tone(1000, -12, 400*time.Millisecond, 8000), 8000)
}

// Record takes down what the caller says until a key, silence, the longest time or their hanging up ends it: then the error is ErrGone, and
// what they said until then is there all the same. What else records the call stops. One that cannot be made is an error and no Recorded.
func (v *Visit) Record(ctx context.Context, o Recording) (Recorded, error) {
	if err := v.Answer(ctx); err != nil {
		return Recorded{}, err
	}
	if o.Beep {
		if err := v.Play(ctx, beepTone(), Playing{}); err != nil {
			return Recorded{}, err
		}
		v.Forget()
	}
	r, err := v.openRecorder(ctx, o)
	if err != nil {
		return Recorded{}, err
	}
	done := Recorded{Path: o.Path}
	ear := &messageEar{}
	v.leg.stream.OnAudio(ear.hear)
	done.EndedBy, done.Key = v.awaitEnd(ctx, o, ear)
	v.leg.stream.OnAudio(nil)
	r.Stop()
	err = v.do(ctx, func(context.Context) error { return nil }) // the caller may have hung up this very moment
	if err != nil {
		done.EndedBy = "hangup"
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	result, failed := r.Close(closing)
	if result.SHA256 == "" && failed != nil {
		return Recorded{}, failed
	}
	done.Duration, done.Size, done.SHA256 = result.Duration, result.Size, result.SHA256
	done.Speech = time.Duration(ear.speech.Load())
	return done, err
}

// openRecorder begins the file. The call waits with its end until the script has kept what was said.
func (v *Visit) openRecorder(ctx context.Context, o Recording) (r *media.Recorder, err error) {
	err = v.do(ctx, func(ctx context.Context) error {
		c := v.c
		if c.recording != nil {
			c.stopRecording(ctx, reply{})
		}
		cfg := media.RecordConfig{Path: o.Path, Left: v.leg.stream, Codec: media.PCMU, Wideband: v.leg.codec() > media.PCMA, Mono: true,
			OnError: func(err error) { c.sw.Log.Error("message cut short", "call", c.id, "org", c.new.Org, "err", err) }}
		if v.leg.codec() == media.PCMA {
			cfg.Codec = media.PCMA
		}
		var failed error
		if r, failed = c.sw.Media.Record(cfg); failed == nil {
			v.writing.Store(true)
			c.step("message.started", v.leg, nil)
		}
		return failed
	})
	return r, err
}

// awaitEnd waits until a message is over and says why.
func (v *Visit) awaitEnd(ctx context.Context, o Recording, ear *messageEar) (by string, key rune) {
	longest := time.NewTimer(o.Max)
	defer longest.Stop()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	ear.spoke.Store(time.Now().UnixNano())
	for {
		if d, ok := v.keys.take(); ok {
			if strings.ContainsRune(o.EndKeys, d) {
				return "key", d
			}
			continue
		}
		select {
		case <-v.keys.pressed:
		case <-longest.C:
			return "max", 0
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

// messageEar follows how much a caller says. It is fed by the goroutine of the stream.
type messageEar struct {
	spoke  atomic.Int64 // when something was said last
	speech atomic.Int64 // how much was
	gap    time.Duration
}

// wordGap is how long somebody who speaks may be silent between words.
const wordGap = 400 * time.Millisecond

func (e *messageEar) hear(pcm []int16) {
	d := time.Duration(len(pcm)) * time.Second / 8000
	if !loud(pcm) {
		e.gap += d
		return
	}
	if e.gap <= wordGap && e.speech.Load() > 0 {
		d += e.gap
	}
	e.gap = 0
	e.speech.Add(int64(d))
	e.spoke.Store(time.Now().UnixNano())
}

// LeftMessage says that a message of the caller was kept: an unanswered call is missed for voicemail then, and its record names the message.
func (v *Visit) LeftMessage() { v.left.Store(true) }

// keepTime bounds how long the end of a call waits for a message to be kept.
const keepTime = 10 * time.Second

// keepMessages waits until what callers said is kept: the record of the call tells of it.
func (c *liveCall) keepMessages() {
	limit := time.NewTimer(keepTime)
	defer limit.Stop()
	for _, v := range c.visits {
		if !v.writing.Load() {
			continue
		}
		select {
		case <-v.gone:
		case <-limit.C:
			c.sw.Log.Warn("message not kept before the call's end", "call", c.id, "org", c.new.Org)
			return
		}
	}
	for _, v := range c.visits {
		if v.left.Load() {
			c.outcome.Missed = "voicemail"
		}
	}
}
