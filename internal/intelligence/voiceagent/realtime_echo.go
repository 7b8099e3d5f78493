package voiceagent

import "time"

// echoGate keeps the echo of the engine's own audio from the engine, which would answer it. While the agent can be heard
// and for maxEchoDelay after, the engine gets silence until the caller says something else.
type echoGate struct {
	echo    echoDetector
	recent  []int16 // the last preRoll of the caller's audio
	played  playedAudio
	noEcho  int  // consecutive loud frames that are no echo
	silence int  // samples since the caller was last loud
	open    bool // the caller speaks although the agent can be heard
}

// openGateSilence closes an open gate.
const openGateSilence = 600 * time.Millisecond

// pass returns what the engine gets for the next audio of the caller. loud says whether it is, and loudFrames how many of
// the last frames were. The played audio must be up to date.
func (g *echoGate) pass(pcm []int16, loud bool, loudFrames int) []int16 {
	g.recent = append(g.recent, pcm...)
	if most := samplesOf(preRoll); len(g.recent) > most {
		g.recent = append(g.recent[:0], g.recent[len(g.recent)-most:]...)
	}
	if !g.played.audible() {
		g.open, g.noEcho, g.silence = false, 0, 0
		return pcm
	}
	g.silence += len(pcm)
	if loud {
		g.silence = 0
		if g.noEcho++; g.echo.isEcho(g.recent, g.played.pcm, 8000) {
			g.noEcho = 0
		}
	}
	need := bargeInFrames
	if g.played.silence > samplesOf(lateEcho) {
		need = speechFrames
	}
	switch {
	case g.open:
		g.open = g.silence < samplesOf(openGateSilence) && (!loud || g.noEcho > 0)
	case loud && loudFrames >= need && g.noEcho >= speechFramesAfterEcho:
		g.open = true
		return append([]int16(nil), g.recent...)
	}
	if g.open {
		return pcm
	}
	return make([]int16, len(pcm))
}

// playedAudio is what the caller was played until now at 8 kHz: the last echoWindow and maxEchoDelay of it.
type playedAudio struct {
	pcm     []int16
	item    *outputItem // that was played last
	taken   int         // samples of the item in pcm
	waiting int         // samples of time without audio, which may come late
	silence int         // samples at the end of pcm that are silence
}

// playedJitter is how late the position of a playback may be.
const playedJitter = 100 * time.Millisecond

// advance records n samples of playback: item x was played up to position at, or silence if x is nil.
func (p *playedAudio) advance(x *outputItem, at, n int) {
	if p.pcm == nil {
		p.pcm = make([]int16, samplesOf(echoWindow+maxEchoDelay))
		p.silence = len(p.pcm)
	}
	if x != p.item {
		p.item, p.taken = x, 0
	}
	p.waiting += n
	if x != nil {
		at = min(at, len(x.pcm))
	}
	if x == nil || at <= p.taken {
		if p.waiting >= samplesOf(playedJitter) {
			p.addSilence(p.waiting)
			p.waiting = 0
		}
		return
	}
	fresh := x.pcm[p.taken:at]
	p.addSilence(max(p.waiting-len(fresh), 0))
	p.add(fresh)
	p.taken, p.waiting, p.silence = at, 0, 0
}

func (p *playedAudio) addSilence(n int) {
	n = min(n, len(p.pcm))
	p.add(make([]int16, n))
	p.silence = min(p.silence+n, len(p.pcm))
}

func (p *playedAudio) add(pcm []int16) {
	pcm = tail(pcm, len(p.pcm))
	copy(p.pcm, p.pcm[len(pcm):])
	copy(p.pcm[len(p.pcm)-len(pcm):], pcm)
}

// audible reports whether the recorded playback is not all silence, so that the caller's telephone may return an echo.
func (p *playedAudio) audible() bool { return p.silence < len(p.pcm) }

// addAudio keeps audio of an item at 8 kHz, for the comparison with the caller's audio.
func (x *outputItem) addAudio(pcm []int16, rate int) {
	n := max(rate/8000, 1)
	x.rest = append(x.rest, pcm...)
	for len(x.rest) >= n {
		sum := 0
		for _, v := range x.rest[:n] {
			sum += int(v)
		}
		x.pcm = append(x.pcm, int16(sum/n))
		x.rest = x.rest[n:]
	}
}

// gated returns what the engine gets for the next audio of the caller.
func (l *realtimeConversation) gated(pcm []int16, loud bool) []int16 {
	var x *outputItem
	at := 0
	if len(l.items) > 0 && l.items[0].playing != nil {
		x = l.items[0]
		at = samplesOf(x.playing.Played())
	}
	l.gate.played.advance(x, at, len(pcm))
	return l.gate.pass(pcm, loud, l.activity.loudFrames())
}
