package voiceagent

import (
	"slices"
	"time"

	"soniq/internal/protocol/media/clip"
)

// Echo of the agent's own speech on the caller's line.
const (
	echoRate              = 4000 // Hz at which audio is compared
	echoWindow            = 400 * time.Millisecond
	maxEchoDelay          = time.Second // an echo that comes later counts as speech
	echoMatch             = 0.5         // share of the energy from which audio is an echo
	echoBlocks            = 4           // of the window
	speechFramesAfterEcho = 3           // frames of 20 ms that are no echo, before the caller is heard
	echoLagWindow         = 160         // samples between the delays of two blocks at most

	wordTimeError = 500 * time.Millisecond // of the estimated times of the agent's words
	lateEcho      = 300 * time.Millisecond // after the agent's end, from which an utterance of one or two words is an answer
	maxCutOffs    = 3                      // consecutive answers that the caller interrupts; then a person takes over
)

// echoDetector recognises the agent's own audio in the caller's audio.
type echoDetector struct {
	lag int // delay of the last echo in samples; 0: none so far
}

// isEcho reports whether the last echoWindow of heard, at 8 kHz, is a delayed copy of played, at another rate. Both end now. The level of
// the copy does not matter. Each block of the window has its own delay near the common one. The time between two parts of the agent's
// speech is not exact.
func (d *echoDetector) isEcho(heard, played []int16, rate int) bool {
	x, ref := reduced(tail(heard, int(echoWindow.Seconds()*8000)), 8000), reduced(played, rate)
	energy := energyOf(x)
	if energy == 0 || len(ref) <= len(x) {
		return false
	}
	if d.lag > 0 && explained(x, ref, d.lag) > echoMatch*energy {
		return true
	}
	lag, _ := bestLag(x, ref, 0, 0, int(maxEchoDelay.Seconds()*echoRate))
	if explained(x, ref, lag) <= echoMatch*energy {
		return false
	}
	d.lag = lag
	return true
}

// explained returns how much energy of x is that of copies of ref with delays near a lag.
func explained(x, ref []float32, lag int) (sum float64) {
	n := len(x) / echoBlocks
	for b := range echoBlocks {
		_, energy := bestLag(x[b*n:(b+1)*n], ref, len(x)-(b+1)*n, max(lag-echoLagWindow, 0), lag+echoLagWindow)
		sum += energy
	}
	return sum
}

// bestLag returns the delay from first to last at which x is most like a copy of ref, and the energy of that copy. x ends
// a number of samples before the end of ref. A long range is searched at half the rate first, which costs a quarter.
func bestLag(x, ref []float32, before, first, last int) (lag int, energy float64) {
	if last-first > 2*echoLagWindow {
		rough, _ := lagBetween(halved(x), halved(ref), before/2, first/2, last/2)
		first, last = max(first, 2*rough-4), min(last, 2*rough+4)
	}
	return lagBetween(x, ref, before, first, last)
}

// lagBetween implements bestLag by trying every delay. The race detector does not watch it: it reads only its arguments, which nothing else
// writes, and would take longer than the audio lasts.
//
//go:norace
func lagBetween(x, ref []float32, before, first, last int) (lag int, energy float64) {
	for l := first; l <= min(last, len(ref)-len(x)-before); l++ {
		end := len(ref) - before - l
		part := ref[end-len(x) : end]
		var sum, power float32
		for i, v := range x {
			sum += v * part[i]
			power += part[i] * part[i]
		}
		if e := float64(sum) * float64(sum) / max(float64(power), 1); e > energy {
			lag, energy = l, e
		}
	}
	return lag, energy
}

// halved returns the means of pairs of samples, the last pair at the end.
func halved(x []float32) []float32 {
	x = x[len(x)%2:]
	out := make([]float32, len(x)/2)
	for i := range out {
		out[i] = (x[2*i] + x[2*i+1]) / 2
	}
	return out
}

// reduced returns audio at echoRate: the means of consecutive samples.
func reduced(pcm []int16, rate int) []float32 {
	n := rate / echoRate
	out := make([]float32, len(pcm)/n)
	for i := range out {
		sum := 0
		for _, v := range pcm[i*n : (i+1)*n] {
			sum += int(v)
		}
		out[i] = float32(sum) / float32(n)
	}
	return out
}

func energyOf(x []float32) (sum float64) {
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return sum
}

func tail(pcm []int16, n int) []int16 { return pcm[max(len(pcm)-n, 0):] }

// lastPlayed returns what the caller was played until now, at clip.Rate: the last echoWindow and maxEchoDelay of it,
// after silence if it is less. It is nil if nothing was played in that time.
func (p *agentSpeech) lastPlayed(now time.Time) []int16 {
	want := int((echoWindow + maxEchoDelay).Seconds() * clip.Rate)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.first.IsZero() {
		return nil
	}
	silent := now // start of the silence after a span
	var out []int16
	for i := len(p.spans) - 1; i >= 0 && len(out) < want; i-- {
		x := p.spans[i]
		if x.ended.IsZero() {
			x.to, x.ended = x.from+p.played(), now
		}
		if i == len(p.spans)-1 && samplesIn(now.Sub(x.ended)) >= want {
			return nil
		}
		out = append(make([]int16, samplesIn(silent.Sub(x.ended))), out...)
		out = append(x.audio(want-len(out)), out...)
		silent = x.began
	}
	return append(make([]int16, max(want-len(out), 0)), out...)
}

// playedSpan is a piece of a part that was played without a pause.
type playedSpan struct {
	part         *speechPart
	from, to     time.Duration // in the part
	began, ended time.Time     // ended is zero while it is playing
}

// audio returns the last samples of a span, most at most.
func (x playedSpan) audio(most int) []int16 {
	to := min(samplesIn(x.to), x.part.clip.Len())
	from := max(to-max(most, 0), samplesIn(x.from))
	return slices.Clone(new(clip.Reader).Samples(x.part.clip, from, to-from))
}

// samplesIn returns how many samples of a clip last as long as d; 0 if it is negative.
func samplesIn(d time.Duration) int { return max(int(d.Seconds()*clip.Rate), 0) }

// played returns how much was played of what is playing. The caller holds the lock.
func (p *agentSpeech) played() time.Duration {
	if p.playing == nil {
		return 0
	}
	return p.playing.Played()
}

// playedOf returns how much of a part was played until now. The caller holds the lock.
func (p *agentSpeech) playedOf(part *speechPart) time.Duration {
	if n := len(p.spans); n > 0 && p.spans[n-1].part == part && p.playing != nil {
		return part.played + p.playing.Played()
	}
	return part.played
}

// wordsBetween returns the words that were played between two times, as far as they can be estimated.
func (p *agentSpeech) wordsBetween(from, to time.Time) (all []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, part := range p.parts {
		if part.began.IsZero() || part.clip == nil {
			continue
		}
		words := wordsOf(part.text)
		for i, w := range words {
			at := time.Duration(float64(part.clip.Duration()) * float64(i) / float64(len(words)))
			if spoken := part.began.Add(at); at <= p.playedOf(part)+wordTimeError && !spoken.Before(from) && !spoken.After(to) {
				all = append(all, w)
			}
		}
	}
	return all
}

// agentSpeeches returns the last two speeches of the agent, the older one first.
func (t *conversation) agentSpeeches() (all []*agentSpeech) {
	for _, p := range []*agentSpeech{t.previous, t.speech} {
		if p != nil {
			all = append(all, p)
		}
	}
	return all
}

// hearsEcho reports whether the caller's last audio is an echo of the agent. It is called for each frame while the
// caller is loud.
func (t *conversation) hearsEcho(now time.Time) bool {
	possible := false
	for _, p := range t.agentSpeeches() {
		played := p.lastPlayed(now)
		if t.echo.isEcho(t.recent, played, clip.Rate) {
			t.noEcho = 0
			return true
		}
		possible = possible || played != nil
	}
	t.noEcho++
	return possible && t.noEcho < speechFramesAfterEcho
}

// isOwnWords reports whether the words of an utterance are words that the agent said during it or in the second before
// it. An answer of one or two words that begins after the agent's end is not its echo.
func (t *conversation) isOwnWords(u *callerUtterance, text string) bool {
	heard := wordsOf(text)
	var said []string
	var ended time.Time
	for _, p := range t.agentSpeeches() {
		said = append(said, p.wordsBetween(u.began.Add(-maxEchoDelay-wordTimeError), u.last.Add(wordTimeError))...)
		if _, last := p.playedSpan(); last.After(ended) {
			ended = last
		}
	}
	if len(heard) < 3 && !u.bargeIn && u.began.Sub(ended) > lateEcho {
		return false
	}
	return areOwnWords(heard, said)
}

// areOwnWords reports whether at least three quarters of the words heard are among the words said, in the same order
// and beside each other.
func areOwnWords(heard, said []string) bool {
	most := 0
	for from := range said {
		part := said[from:min(from+len(heard)+2, len(said))]
		most = max(most, commonWords(heard, part))
	}
	return most > 0 && 4*most >= 3*len(heard)
}

// commonWords returns the length of the longest common subsequence of words.
func commonWords(a, b []string) int {
	row := make([]int, len(b)+1)
	for _, x := range a {
		diagonal := 0
		for j, y := range b {
			above := row[j+1]
			if x == y {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(row[j+1], row[j])
			}
			diagonal = above
		}
	}
	return row[len(b)]
}
