package voiceagent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"

	"soniq/internal/protocol/media"
)

const (
	voiceLimit  = 10 * time.Second // to synthesise a part
	fillsAfter  = 1200 * time.Millisecond
	partsAhead  = 2   // synthesised before they are played
	mostParts   = 100 // per speech: limits endless output of a model
	soonAfter   = 300 * time.Millisecond
	endsPart    = " —" // ends text that was cut off
	dropsSilent = 40 * time.Millisecond
)

// agentSpeech is an utterance of the agent: its parts are synthesised while the text arrives, and played one after
// another once it is released. It can be paused, and records how much was played. It is safe for concurrent use.
type speech struct {
	s        *Service
	line     Caller
	set      Setting
	ctx      context.Context
	cancel   context.CancelFunc
	guarded  int           // parts at the beginning that cannot be interrupted
	fleeting bool          // its text is specific to this conversation and not cached
	filler   *media.Clip   // played if nothing else is ready in time; nil: silence
	texts    chan string   // closed by finish
	clips    chan *spoken  // synthesised parts
	over     chan struct{} // closed when all was played, or after stop
	work     sync.WaitGroup

	mu         sync.Mutex // guards the fields below
	released   chan struct{}
	let        bool
	parts      []*spoken
	playing    Playing
	pausing    chan struct{} // nil: not paused
	ended      bool          // finish was called
	err        error
	voiced     time.Time // the first part was synthesised
	first      time.Time // the first part began to play
	last       time.Time // last time that something was played
	partsHeard int
}

type spoken struct {
	text  string
	clip  *media.Clip
	heard time.Duration
	done  bool
}

func (s *Service) newSpeech(ctx context.Context, line Caller, set Setting) *speech {
	p := &speech{s: s, line: line, set: set, texts: make(chan string, mostParts), clips: make(chan *spoken, partsAhead), over: make(chan struct{}),
		released: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(ctx)
	p.work.Go(p.voice)
	p.work.Go(p.play)
	return p
}

// add queues a part for synthesis; parts beyond maxParts are dropped.
func (p *speech) add(text string) {
	if text = plain(text); strings.IndexFunc(text, sounds) < 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended || len(p.parts) == mostParts {
		return
	}
	p.parts = append(p.parts, &spoken{text: text})
	p.texts <- text // the channel holds maxParts
}

func sounds(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// finish marks the end of the parts.
func (p *speech) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.ended = true
		close(p.texts)
	}
}

// release starts playing.
func (p *speech) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.let {
		p.let = true
		close(p.released)
	}
}

// stop ends the speech, and waits until it is silent.
func (p *speech) stop() {
	p.cancel()
	p.finish()
	p.work.Wait()
}

// synthesizeLoop synthesises part after part.
func (p *speech) voice() {
	defer close(p.clips)
	for n := 0; ; n++ {
		select {
		case text, more := <-p.texts:
			if !more {
				return
			}
			clip, err := p.speak(text)
			if err != nil {
				p.fail(err)
				return
			}
			p.mu.Lock()
			part := p.parts[n]
			part.clip = clip
			if p.voiced.IsZero() {
				p.voiced = p.s.Now()
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

func (p *speech) speak(text string) (*media.Clip, error) {
	ctx, cancel := context.WithTimeout(p.ctx, voiceLimit)
	defer cancel()
	clip, err := p.s.Voice(ctx, p.set.Org, text, p.set.Voice, p.set.Language, p.fleeting)
	if err != nil {
		return nil, fmt.Errorf("the voice: %w", err)
	}
	return clip, nil
}

func (p *speech) fail(err error) {
	if p.ctx.Err() != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = errors.Join(p.err, err)
}

// playLoop plays part after part.
func (p *speech) play() {
	defer close(p.over)
	select {
	case <-p.released:
	case <-p.ctx.Done():
		return
	}
	fill := time.NewTimer(fillsAfter)
	defer fill.Stop()
	for {
		select {
		case part, more := <-p.clips:
			if !more || p.hear(part) != nil {
				return
			}
			fill.Stop()
		case <-fill.C:
			p.fillIn()
		case <-p.ctx.Done():
			return
		}
	}
}

// playFiller plays the filler while a reply takes long.
func (p *speech) fillIn() {
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
func (p *speech) hear(part *spoken) error {
	for {
		if err := p.unpaused(); err != nil {
			return err
		}
		sound, err := p.line.Say(p.ctx, part.clip.From(part.heard))
		if err != nil {
			return err
		}
		p.begun(sound)
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
func (p *speech) begun(sound Playing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.first.IsZero() {
		p.first = p.s.Now()
	}
	p.playing = sound
	if p.pausing != nil {
		sound.Stop()
	}
}

// interrupted records how much of a part was played, and reports whether the rest remains to be played.
func (p *speech) interrupted(part *spoken, sound Playing) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.playing = nil
	part.heard += sound.Heard()
	p.last = p.s.Now()
	if p.pausing != nil && part.heard+dropsSilent < part.clip.Duration() {
		return true
	}
	part.done = p.ctx.Err() == nil
	if part.done {
		p.partsHeard++
	}
	return false
}

// waitResumed waits while the speech is paused.
func (p *speech) unpaused() error {
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
func (p *speech) pause() {
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

func (p *speech) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pausing != nil {
		close(p.pausing)
		p.pausing = nil
	}
}

func (p *speech) paused() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pausing != nil
}

// interruptible reports whether the caller may interrupt now.
func (p *speech) interruptible() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.set.Interruptible && p.partsHeard >= p.guarded
}

// audible reports whether it is playing, and whether it has only just begun.
func (p *speech) audible() (is, soon bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.playing != nil && p.pausing == nil, p.s.Now().Sub(p.first) < soonAfter
}

func (p *speech) isOver() bool {
	select {
	case <-p.over:
		return true
	default:
		return false
	}
}

// playedText returns the text that was played, cut off within the last incomplete part; whole is true if nothing is
// missing.
func (p *speech) heard() (text string, whole bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	for _, part := range p.parts {
		if part.done {
			all = append(all, part.text)
			continue
		}
		if begun := share(part); begun != "" {
			all = append(all, begun)
		}
		return strings.TrimSpace(strings.Join(all, " ") + endsPart), false
	}
	return strings.Join(all, " "), p.ended
}

// partPlayedText returns the text of a part that was played, in proportion to the time.
func share(part *spoken) string {
	if part.clip == nil || part.clip.Duration() == 0 {
		return ""
	}
	all := strings.Fields(part.text)
	return strings.Join(all[:min(int(float64(len(all))*float64(part.heard)/float64(part.clip.Duration())), len(all))], " ")
}

// text returns the whole text, played or not.
func (p *speech) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	for _, part := range p.parts {
		all = append(all, part.text)
	}
	return strings.Join(all, " ")
}

// playedSpan returns when it was played.
func (p *speech) span() (began, ended time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.first, p.last
}

func (p *speech) stamps() (voiced, first time.Time, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.voiced, p.first, p.err
}
