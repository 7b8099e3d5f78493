package voiceagent

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Limits of a conversation with a RealtimeEngine.
const (
	openLimit = 8 * time.Second // time limit to connect
)

var errStalled = errors.New("no answer in time")

// realtimeConversation is one conversation run by a RealtimeEngine. Mandatory announcements use our own synthesiser:
// the disclosure, errors, and transfers. All state belongs to one goroutine; other goroutines post functions to it.
type live struct {
	s      *Service
	ctx    context.Context
	line   Caller
	set    Setting
	engine string
	posts  chan func()
	work   sync.WaitGroup
	saves  sync.WaitGroup

	wire    Wire // nil until connected
	greeted bool
	own     *speech // speech of our own synthesiser
	items   []*item // output items of the engine, played one after another
	cut     map[string]bool
	turn    *Turn
	hears   string          // id of the caller's input item in this turn
	unheard map[string]span // times of input items without text so far, by id
	acting  bool            // a tool is running
	waits   time.Time       // start of waiting for an answer; zero: not waiting
	caller  bool            // the caller is speaking
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
	lost    error // error of the engine before its first word
	ending  *Result
	result  *Result
}

// timeSpan is the start and end of an utterance.
type span struct{ began, ended time.Time }

// converseRealtime runs a conversation with a RealtimeEngine until it ends.
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

// connect opens the session while the caller hears the disclosure.
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

// sendAudio forwards the caller's audio, unless the caller is not listened to at the moment.
func (l *live) hear(pcm []int16) {
	if l.wire == nil || !l.greeted || l.ending != nil || !l.set.Interruptible && len(l.items) > 0 {
		return
	}
	l.wire.Hear(pcm)
}

// say speaks a text with our own synthesiser. If ending is not nil the conversation ends after it.
func (l *live) voice(ending *Result, text string) {
	l.hush()
	l.endOwn()
	p := l.s.newSpeech(l.ctx, l.line, l.set)
	p.add(text)
	p.finish()
	p.release()
	l.own, l.ending = p, ending
}

// endOwnSpeech stops the speech of our own synthesiser.
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

// finishWith ends the conversation with an announcement.
func (l *live) finishWith(r Result, p phrase) {
	l.waits = time.Time{}
	l.voice(&r, inLanguage(l.set.Language, p))
}

// fail ends the conversation after an error of the engine.
func (l *live) broken(err error) {
	if l.ending != nil {
		return
	}
	if l.own != nil { // the disclosure is always played to its end
		l.lost = err
		return
	}
	l.s.Log.Warn("voice agent failed", "call", l.set.CallID, "err", err)
	l.finishWith(Result{Outcome: Failed, Reason: "the engine: " + err.Error()}, apology)
}

// tick runs every 20 ms.
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
	case l.wire == nil: // connecting
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

// request makes the engine speak, and starts the timeout for its answer.
func (l *live) ask(now time.Time, how func()) {
	l.waits = now
	how()
}

// promptSilentCaller asks a silent caller, and ends the conversation after maxSilencePrompts.
func (l *live) silent(now time.Time) {
	if l.asked++; l.asked > asksAgain {
		l.result = &Result{Outcome: Silence, Reason: "the caller said nothing"}
		return
	}
	l.ask(now, func() { l.wire.Say(inLanguage(l.set.Language, stillThere)) })
}

// handleKeys processes the keys the caller pressed.
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

// answerKeys sends the pressed keys to the engine as text.
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
