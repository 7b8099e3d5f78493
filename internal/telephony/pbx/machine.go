package pbx

import (
	"context"
	"time"

	"soniq/internal/telephony/call"
)

// People answer a telephone with a word or two and wait; machines speak on, or beep. The first seconds tell.
const (
	machineWindow = 4 * time.Second         // how long is listened
	machineSpeech = 2200 * time.Millisecond // so much speech without a pause is a machine's
	personPause   = 700 * time.Millisecond  // so long a pause after some speech is a person waiting
)

// A greeting follows what is said after the answer.
type greeting struct {
	heard   time.Duration
	speech  time.Duration // without a long pause
	silence time.Duration
}

// verdict of a greeting so far.
type verdict int

const (
	undecided verdict = iota
	person
	machine
)

// hear takes 8 kHz audio.
func (g *greeting) hear(pcm []int16) verdict {
	d := time.Duration(len(pcm)) * time.Second / 8000
	g.heard += d
	if loud(pcm) {
		g.speech += d + g.silence
		g.silence = 0
	} else if g.speech > 0 {
		g.silence += d
	}
	switch {
	case g.speech >= machineSpeech:
		return machine
	case g.speech > 0 && g.silence >= personPause, g.heard >= machineWindow:
		return person
	}
	return undecided
}

// loud reports whether a piece of audio is more than a quiet room's.
func loud(pcm []int16) bool {
	var sum int64
	for _, v := range pcm {
		sum += int64(v) * int64(v)
	}
	return len(pcm) > 0 && sum/int64(len(pcm)) > 250*250
}

// detectMachine listens to who answered, says what it is, and hangs machines up where asked.
func (c *liveCall) detectMachine(l *leg, hangUp bool) {
	g := &greeting{}
	decided := false // belongs to the goroutine of OnAudio
	l.stream.OnAudio(func(pcm []int16) {
		if decided {
			return
		}
		v := g.hear(pcm)
		if v == undecided {
			return
		}
		decided = true
		c.inbox.push(message{run: func(ctx context.Context) { c.whatAnswered(ctx, l, v == machine, hangUp) }})
	})
}

func (c *liveCall) whatAnswered(ctx context.Context, l *leg, isMachine, hangUp bool) {
	l.stream.OnAudio(nil)
	c.machine = &isMachine
	c.step("machine_detection", l, detail{"machine": isMachine})
	c.change(ctx)
	if isMachine && hangUp {
		c.hangUpAll(call.Outcome{Reason: "machine", HangupBy: "system"}, normalClearing)
	}
}
