package voiceagent

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// The limits of a conversation with a Duplex.
const (
	openLimit = 8 * time.Second // to be connected
)

var errStalled = errors.New("no answer in time")

// A live is one conversation that a Duplex leads. What it must say for certain, our own voice says: what it is, that something went wrong,
// and where the caller is led. Everything happens in its own goroutine; what others find out is posted to it.
type live struct {
	s      *Service
	ctx    context.Context
	line   Caller
	set    Setting
	engine string
	posts  chan func()
	work   sync.WaitGroup
	saves  sync.WaitGroup

	wire    Wire // nil until it is open
	greeted bool
	own     *speech // what our own voice says
	items   []*item // what the Duplex says, heard one after another
	cut     map[string]bool
	turn    *Turn
	hears   string          // the item of what the caller says in this turn
	unheard map[string]span // when the caller said what is not known in words yet, by its item
	acting  bool            // a tool is at work
	waits   time.Time       // since when an answer is waited for; zero: none is
	caller  bool            // speaks
	rounds  int
	used    int
	turns   int
	began   time.Time
	idle    time.Time
	asked   int
	digits  string
	keyed   time.Time
	words   []Message
	diary   *diary
	lost    error // why the Duplex is of no use, where that was found before its first word
	ending  *Result
	result  *Result
}

// A span is when something was said.
type span struct{ began, ended time.Time }

// talkLive talks to a caller by a Duplex until the conversation is over.
func (s *Service) talkLive(ctx context.Context, line Caller, set Setting) Result {
	ctx, cancel := context.WithCancel(ctx)
	l := &live{s: s, ctx: ctx, line: line, set: set, engine: s.Duplex.Engine(), posts: make(chan func(), 16), cut: map[string]bool{}, unheard: map[string]span{}, began: s.Now()}
	l.diary = s.keepDiary(ctx, set)
	defer func() {
		cancel()
		l.work.Wait()
		l.saves.Wait()
		l.diary.close()
	}()
	line.Step("ai_agent.began", map[string]any{"flow_id": set.FlowID, "engine": l.engine})
	r := l.run()
	line.Step("ai_agent.ended", map[string]any{"outcome": orGone(r.Outcome), "reason": r.Reason, "turns": l.turns, "seconds": int(s.Now().Sub(l.began).Seconds())})
	return r
}

func (l *live) run() Result {
	pcm, stop, err := l.line.Listen(l.ctx)
	if err != nil {
		return Result{Reason: "the caller hung up"}
	}
	defer stop()
	l.open()
	l.voice(nil, Disclosure(l.set.Language, false))
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for l.result == nil {
		var signs <-chan Sign
		if l.wire != nil {
			signs = l.wire.Signs()
		}
		select {
		case piece := <-pcm:
			l.hear(piece)
		case sign, more := <-signs:
			l.sign(sign, more)
		case f := <-l.posts:
			f()
		case <-l.line.Pressed():
			l.pressed()
		case <-tick.C:
			l.tick(l.s.Now())
		case <-l.ctx.Done():
			l.result = &Result{Reason: "the caller hung up"}
		}
	}
	l.close()
	return *l.result
}

// open connects to the Duplex while the caller hears what they talk to.
func (l *live) open() {
	l.work.Go(func() {
		ctx, cancel := context.WithTimeoutCause(l.ctx, openLimit, errStalled)
		defer cancel()
		wire, err := l.s.Duplex.Open(ctx, l.set)
		select {
		case l.posts <- func() { l.opened(wire, err) }:
		case <-l.ctx.Done():
			if wire != nil {
				wire.Close()
			}
		}
	})
}

func (l *live) opened(wire Wire, err error) {
	switch {
	case err != nil:
		l.broken(err)
	case l.ending != nil:
		wire.Close()
	default:
		l.wire = wire
	}
}

func (l *live) close() {
	l.hush()
	l.keep()
	if l.wire != nil {
		l.wire.Close()
	}
	l.endOwn()
	l.result.Words = transcript(l.words)
}

// hear passes on what the caller says, where they are listened to.
func (l *live) hear(pcm []int16) {
	if l.wire == nil || !l.greeted || l.ending != nil || !l.set.Interruptible && len(l.items) > 0 {
		return
	}
	l.wire.Hear(pcm)
}

// voice says something by our own voice; then, where ending is not nil, the conversation is over.
func (l *live) voice(ending *Result, text string) {
	l.hush()
	l.endOwn()
	p := l.s.newSpeech(l.ctx, l.line, l.set)
	p.add(text)
	p.finish()
	p.release()
	l.own, l.ending = p, ending
}

// endOwn ends what our own voice says.
func (l *live) endOwn() {
	if l.own == nil {
		return
	}
	l.own.stop()
	text, _ := l.own.heard()
	began, ended := l.own.span()
	l.diary.say(true, text, began, ended)
	l.own = nil
}

// finishWith ends the conversation with words of our own.
func (l *live) finishWith(r Result, p phrase) {
	l.waits = time.Time{}
	l.voice(&r, inLanguage(l.set.Language, p))
}

// broken ends a conversation whose Duplex does not do its work.
func (l *live) broken(err error) {
	if l.ending != nil {
		return
	}
	if l.own != nil { // what the caller talks to is said in any case
		l.lost = err
		return
	}
	l.s.Log.Warn("voice agent failed", "call", l.set.CallID, "err", err)
	l.finishWith(Result{Outcome: Failed, Reason: "the engine: " + err.Error()}, apology)
}

// tick is done every 20 ms.
func (l *live) tick(now time.Time) {
	if l.own != nil {
		if !l.own.isOver() {
			return
		}
		_, _, err := l.own.stamps()
		l.endOwn()
		l.idle = now
		if err != nil && l.ending == nil {
			l.ending = &Result{Outcome: Failed, Reason: err.Error()}
		}
	}
	l.played(now)
	switch {
	case len(l.items) > 0:
	case l.ending != nil && !l.acting:
		l.result = l.ending
	case l.ending != nil:
	case l.lost != nil:
		l.broken(l.lost)
	case l.wire == nil: // it is being connected to
	case !l.greeted:
		l.greet(now)
	case now.Sub(l.began) > l.set.Longest:
		l.finishWith(Result{Outcome: Handoff, Reason: "the longest time is over"}, handing)
	case l.digits != "" && now.Sub(l.keyed) > keysPause:
		l.typed(now)
	case !l.waits.IsZero() && now.Sub(l.waits) > firstThought:
		l.broken(errStalled)
	case l.waits.IsZero() && !l.caller && !l.acting && !l.idle.IsZero() && now.Sub(l.idle) > awaits:
		l.silent(now)
	}
}

func (l *live) greet(now time.Time) {
	l.greeted = true
	l.ask(now, func() { l.wire.Say(l.set.Greeting) })
}

// ask has the Duplex say something, and waits for it.
func (l *live) ask(now time.Time, how func()) {
	l.waits = now
	how()
}

// silent asks a caller who says nothing, and gives up at last.
func (l *live) silent(now time.Time) {
	if l.asked++; l.asked > asksAgain {
		l.result = &Result{Outcome: Silence, Reason: "the caller said nothing"}
		return
	}
	l.ask(now, func() { l.wire.Say(inLanguage(l.set.Language, stillThere)) })
}

// pressed takes the keys the caller has pressed.
func (l *live) pressed() {
	for {
		key, ok := l.line.TakeKey()
		switch {
		case !ok:
			return
		case l.ending != nil || l.wire == nil || !l.greeted:
		case key == personKey && l.digits == "" && l.set.Handoff:
			l.finishWith(Result{Outcome: Handoff, Reason: "the caller pressed 0"}, handing)
		case key == '#' && l.digits != "":
			l.typed(l.s.Now())
		case len(l.digits) < mostDigits:
			l.digits, l.keyed = l.digits+string(key), l.s.Now()
			if l.set.Interruptible {
				l.interrupt()
			}
		}
	}
}

// typed has what the caller typed answered.
func (l *live) typed(now time.Time) {
	text := keysSay + l.digits
	l.digits = ""
	l.begins()
	if l.ending != nil {
		return
	}
	l.caller = false
	l.turn.At, l.turn.last, l.turn.Heard = l.keyed, l.keyed, text
	l.told("user", text)
	l.diary.say(false, text, l.keyed, l.keyed)
	l.ask(now, func() { l.wire.Type(text) })
}

func (l *live) told(role, text string) {
	if text != "" {
		l.words = append(l.words, Message{Role: role, Text: text})
		l.words = slices.Delete(l.words, 0, max(len(l.words)-2*wordsTold, 0))
	}
}
