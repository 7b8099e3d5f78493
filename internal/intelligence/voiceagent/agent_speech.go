package voiceagent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"soniq/internal/protocol/media/clip"
)

const (
	fillerAfter  = 1200 * time.Millisecond
	partsAhead   = 2   // synthesised before they are played
	maxParts     = 100 // per speech: limits endless output of a model
	justBegunFor = 300 * time.Millisecond
	cutOffMark   = " —" // ends text that was cut off
	ignoredRest  = 40 * time.Millisecond
)

// agentSpeech is an utterance of the agent: its parts are synthesised while the text arrives, and played one after
// another once it is released. It can be paused, and records how much was played. It is safe for concurrent use.
type agentSpeech struct {
	s               *Service
	line            Caller
	set             ConversationSettings
	ctx             context.Context
	cancel          context.CancelFunc
	uninterruptible int              // parts at the beginning that cannot be interrupted
	uncached        bool             // its text is specific to this conversation and not cached
	filler          *clip.Clip       // played if nothing else is ready in time; nil: silence
	texts           chan string      // closed by finish
	clips           chan *speechPart // synthesised parts
	finished        chan struct{}    // closed when all was played, or after stop
	work            sync.WaitGroup

	mu         sync.Mutex // guards the fields below
	released   chan struct{}
	isReleased bool
	parts      []*speechPart
	playing    Playback
	spans      []playedSpan  // what was played, in order; the last one may be playing
	pausing    chan struct{} // nil: not paused
	ended      bool          // finish was called
	err        error
	voiced     time.Time // the first part was synthesised
	first      time.Time // the first part began to play
	last       time.Time // last time that something was played
	partsHeard int
}

type speechPart struct {
	text   string
	clip   *clip.Clip
	began  time.Time // start of playing
	played time.Duration
	done   bool
}

func (s *Service) newSpeech(ctx context.Context, line Caller, set ConversationSettings) *agentSpeech {
	p := &agentSpeech{s: s, line: line, set: set, texts: make(chan string, maxParts), clips: make(chan *speechPart, partsAhead),
		finished: make(chan struct{}), released: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(ctx)
	p.work.Go(p.synthesizeLoop)
	p.work.Go(p.playLoop)
	return p
}

// add queues a part for synthesis; parts beyond maxParts are dropped.
func (p *agentSpeech) add(text string) {
	if text = spokenText(text); strings.IndexFunc(text, isSpoken) < 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended || len(p.parts) == maxParts {
		return
	}
	p.parts = append(p.parts, &speechPart{text: text})
	p.texts <- text // the channel holds maxParts
}

func isSpoken(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// finish marks the end of the parts.
func (p *agentSpeech) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.ended = true
		close(p.texts)
	}
}

// release starts playing.
func (p *agentSpeech) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.isReleased {
		p.isReleased = true
		close(p.released)
	}
}

// stop ends the speech, and waits until it is silent.
func (p *agentSpeech) stop() {
	p.cancel()
	p.finish()
	p.work.Wait()
}

// synthesizeLoop synthesises part after part.
func (p *agentSpeech) synthesizeLoop() {
	defer close(p.clips)
	for n := 0; ; n++ {
		select {
		case text, more := <-p.texts:
			if !more {
				return
			}
			clip, err := p.synthesize(text)
			if err != nil {
				p.fail(err)
				return
			}
			p.mu.Lock()
			part := p.parts[n]
			part.clip = clip
			if p.voiced.IsZero() {
				p.voiced = p.s.cfg.Clock.Now()
			}
			p.mu.Unlock()
			select {
			case p.clips <- part:
			case <-p.ctx.Done():
				return
			}
		case <-p.ctx.Done():
			return
		}
	}
}

func (p *agentSpeech) synthesize(text string) (*clip.Clip, error) {
	ctx, cancel := context.WithTimeout(p.ctx, p.s.stall)
	defer cancel()
	clip, err := p.s.cfg.Synthesizer.Synthesize(ctx, p.set.Org, text, p.set.Voice, p.set.Language, p.uncached)
	if err != nil {
		return nil, fmt.Errorf("the voice: %w", err)
	}
	return clip, nil
}

func (p *agentSpeech) fail(err error) {
	if p.ctx.Err() != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = errors.Join(p.err, err)
}

// playLoop plays part after part.
func (p *agentSpeech) playLoop() {
	defer close(p.finished)
	select {
	case <-p.released:
	case <-p.ctx.Done():
		return
	}
	fill := time.NewTimer(fillerAfter)
	defer fill.Stop()
	for {
		select {
		case part, more := <-p.clips:
			if !more || p.playPart(part) != nil {
				return
			}
			fill.Stop()
		case <-fill.C:
			p.playFiller()
		case <-p.ctx.Done():
			return
		}
	}
}

// playFiller plays the filler while a reply takes long.
func (p *agentSpeech) playFiller() {
	if p.filler == nil {
		return
	}
	if sound, err := p.line.Say(p.ctx, p.filler); err == nil {
		select {
		case <-sound.Done():
		case <-p.ctx.Done():
			sound.Stop()
		}
	}
}

// playPart plays one part, and continues it after each pause. It returns an error if the caller has hung up or the
// speech was stopped.
func (p *agentSpeech) playPart(part *speechPart) error {
	for {
		if err := p.waitResumed(); err != nil {
			return err
		}
		sound, err := p.line.Say(p.ctx, part.clip.StartingAt(part.played))
		if err != nil {
			return err
		}
		p.setPlaying(part, sound)
		select {
		case <-sound.Done():
		case <-p.ctx.Done():
			sound.Stop()
		}
		if p.ctx.Err() != nil || !p.interrupted(part, sound) {
			return p.ctx.Err()
		}
	}
}

// setPlaying records the current playback; if the speech was paused meanwhile it stops it.
func (p *agentSpeech) setPlaying(part *speechPart, sound Playback) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.s.cfg.Clock.Now()
	if p.first.IsZero() {
		p.first = now
	}
	if part.began.IsZero() {
		part.began = now
	}
	p.playing, p.spans = sound, append(p.spans, playedSpan{part: part, from: part.played, began: now})
	if p.pausing != nil {
		sound.Stop()
	}
}

// interrupted records how much of a part was played, and reports whether the rest remains to be played.
func (p *agentSpeech) interrupted(part *speechPart, sound Playback) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.playing = nil
	part.played += sound.Played()
	p.last = p.s.cfg.Clock.Now()
	span := &p.spans[len(p.spans)-1]
	span.to, span.ended = part.played, p.last
	if p.pausing != nil && part.played+ignoredRest < part.clip.Duration() {
		return true
	}
	part.done = p.ctx.Err() == nil
	if part.done {
		p.partsHeard++
	}
	return false
}

// waitResumed waits while the speech is paused.
func (p *agentSpeech) waitResumed() error {
	p.mu.Lock()
	pausing := p.pausing
	p.mu.Unlock()
	if pausing == nil {
		return nil
	}
	select {
	case <-pausing:
		return nil
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}

// pause stops playing at once, until resume.
func (p *agentSpeech) pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pausing != nil {
		return
	}
	p.pausing = make(chan struct{})
	if p.playing != nil {
		p.playing.Stop()
	}
}

func (p *agentSpeech) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pausing != nil {
		close(p.pausing)
		p.pausing = nil
	}
}

// interruptible reports whether the caller may interrupt now.
func (p *agentSpeech) interruptible() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.set.Interruptible && p.partsHeard >= p.uninterruptible
}

// isHeard reports whether it has begun to play.
func (p *agentSpeech) isHeard() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.first.IsZero()
}

// audible reports whether it is playing, and whether it has only just begun.
func (p *agentSpeech) audible() (is, soon bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.playing != nil && p.pausing == nil, p.s.cfg.Clock.Now().Sub(p.first) < justBegunFor
}

// waitsForVoice reports whether a part is not synthesised yet.
func (p *agentSpeech) waitsForVoice() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.parts, func(part *speechPart) bool { return part.clip == nil })
}

func (p *agentSpeech) isOver() bool {
	select {
	case <-p.finished:
		return true
	default:
		return false
	}
}

// playedText returns the text that was played, cut off within the last incomplete part; whole is true if nothing is
// missing.
func (p *agentSpeech) playedText() (text string, whole bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	for _, part := range p.parts {
		if part.done {
			all = append(all, part.text)
			continue
		}
		if begun := partPlayedText(part); begun != "" {
			all = append(all, begun)
		}
		return strings.TrimSpace(strings.Join(all, " ") + cutOffMark), false
	}
	return strings.Join(all, " "), p.ended
}

// partPlayedText returns the text of a part that was played, in proportion to the time.
func partPlayedText(part *speechPart) string {
	if part.clip == nil || part.clip.Duration() == 0 {
		return ""
	}
	all := strings.Fields(part.text)
	return strings.Join(all[:min(int(float64(len(all))*float64(part.played)/float64(part.clip.Duration())), len(all))], " ")
}

// text returns the whole text, played or not.
func (p *agentSpeech) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	for _, part := range p.parts {
		all = append(all, part.text)
	}
	return strings.Join(all, " ")
}

// playedSpan returns when it was played.
func (p *agentSpeech) playedSpan() (began, ended time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.first, p.last
}

func (p *agentSpeech) timestamps() (voiced, first time.Time, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.voiced, p.first, p.err
}
