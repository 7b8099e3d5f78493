package pbx

import (
	"context"
	"time"

	"soniq/internal/telephony/call"
)

// Thresholds of answering machine detection (AMD). People answer with a word or two and wait. Machines talk on, or
// beep. The first seconds decide.
const (
	machineWindow = 4 * time.Second         // duration of the analysis
	machineSpeech = 2200 * time.Millisecond // speech without a pause that indicates a machine
	personPause   = 700 * time.Millisecond  // pause after speech that indicates a waiting person
)

// greeting analyses the audio after the answer.
type greeting struct {
	heard   time.Duration
	speech  time.Duration // speech without a long pause
	silence time.Duration
}

// verdict is the result of the analysis so far.
type verdict int

const (
	undecided verdict = iota
	person
	machine
)

// feed analyses 8 kHz PCM audio.
func (g *greeting) feed(pcm []int16) verdict {
	d := time.Duration(len(pcm)) * time.Second / 8000
	g.heard += d
	if isLoud(pcm) {
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

// isLoud reports whether the level of the audio is above background noise.
func isLoud(pcm []int16) bool {
	var sum int64
	for _, v := range pcm {
		sum += int64(v) * int64(v)
	}
	return len(pcm) > 0 && sum/int64(len(pcm)) > 250*250
}

// detectMachine analyses the greeting of the answering party, stores the result, and hangs up machines if hangUp is
// set.
func (c *liveCall) detectMachine(l *leg, hangUp bool) {
	g := &greeting{}
	decided := false // owned by the goroutine of OnAudio
	l.stream.OnAudio(func(pcm []int16) {
		if decided {
			return
		}
		v := g.feed(pcm)
		if v == undecided {
			return
		}
		decided = true
		c.inbox.push(message{run: func(ctx context.Context) { c.machineDetected(ctx, l, v == machine, hangUp) }})
	})
}

func (c *liveCall) machineDetected(ctx context.Context, l *leg, isMachine, hangUp bool) {
	l.stream.OnAudio(nil)
	c.machine = &isMachine
	c.addEntry("machine_detection.finished", l, detail{"machine": isMachine})
	c.change(ctx)
	if isMachine && hangUp {
		c.hangUpAll(call.Outcome{Reason: "machine", HangupBy: "system"}, normalClearing)
	}
}
