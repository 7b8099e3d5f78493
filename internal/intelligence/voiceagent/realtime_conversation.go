package voiceagent

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

var errAnswerTimeout = errors.New("no answer in time")

// realtimeConversation is one conversation run by a RealtimeEngine. Mandatory announcements use our own synthesiser:
// the disclosure, errors, and transfers. All state belongs to one goroutine; other goroutines post functions to it.
type realtimeConversation struct {
	s             *Service
	ctx           context.Context
	caller        Caller
	settings      ConversationSettings
	engine        string
	tasks         chan func()
	work          sync.WaitGroup
	pendingWrites sync.WaitGroup

	session        RealtimeSession // nil until connected
	greeted        bool
	ownSpeech      *agentSpeech  // speech of our own synthesiser
	items          []*outputItem // output items of the engine, played one after another
	finishedItems  map[string]bool
	turn           *Turn
	inputItem      string              // id of the caller's input item in this turn
	pendingInputs  map[string]timeSpan // times of input items without text so far, by id
	toolsRunning   bool                // a tool is running
	waitingSince   time.Time           // start of waiting for an answer; zero: not waiting
	callerSpeaking bool                // the caller is speaking
	activity       *voiceActivity      // of the caller
	lastLoud       time.Time           // when the caller was last loud
	gate           echoGate
	cutOffs        int // consecutive answers that the caller interrupted
	rounds         int
	toolCalls      int
	turns          int
	began          time.Time
	idleSince      time.Time
	silencePrompts int
	digits         string
	lastKey        time.Time
	history        []Message
	log            *utteranceLog
	engineErr      error // error of the engine before its first word
	ending         *Result
	result         *Result
}

// timeSpan is the start and end of an utterance.
type timeSpan struct{ began, ended time.Time }

// converseRealtime runs a conversation with a RealtimeEngine until it ends.
func (s *Service) converseRealtime(ctx context.Context, line Caller, set ConversationSettings) Result {
	ctx, cancel := context.WithCancel(ctx)
	l := &realtimeConversation{s: s, ctx: ctx, caller: line, settings: set, engine: s.cfg.Realtime.Engine(), tasks: make(chan func(), 16),
		activity:      newVoiceActivity(),
		finishedItems: map[string]bool{}, pendingInputs: map[string]timeSpan{}, began: s.cfg.Clock.Now()}
	l.log = s.newUtteranceLog(ctx, set)
	defer func() {
		cancel()
		l.work.Wait()
		l.pendingWrites.Wait()
		l.log.close()
	}()
	line.AddEntry("ai_agent.started", map[string]any{"flow_id": set.FlowID, "engine": l.engine})
	r := l.run()
	line.AddEntry("ai_agent.ended", map[string]any{"outcome": outcomeName(r.Outcome), "reason": r.Reason, "turns": l.turns,
		"seconds": int(s.cfg.Clock.Now().Sub(l.began).Seconds())})
	return r
}

func (l *realtimeConversation) run() Result {
	pcm, stop, err := l.caller.Listen(l.ctx)
	if err != nil {
		return Result{Reason: "the caller hung up"}
	}
	defer stop()
	l.connect()
	l.say(nil, Disclosure(l.settings.Language, false))
	tick := time.NewTicker(frameDuration)
	defer tick.Stop()
	for l.result == nil {
		var signs <-chan RealtimeEvent
		if l.session != nil {
			signs = l.session.Events()
		}
		select {
		case piece := <-pcm:
			l.sendAudio(piece)
		case sign, more := <-signs:
			l.handleEvent(sign, more)
		case f := <-l.tasks:
			f()
		case <-l.caller.KeyPressed():
			l.handleKeys()
		case <-tick.C:
			l.tick(l.s.cfg.Clock.Now())
		case <-l.ctx.Done():
			l.result = &Result{Reason: "the caller hung up"}
		}
	}
	l.close()
	return *l.result
}

// connect opens the session while the caller hears the disclosure.
func (l *realtimeConversation) connect() {
	l.work.Go(func() {
		ctx, cancel := context.WithTimeoutCause(l.ctx, l.s.stall, errAnswerTimeout)
		defer cancel()
		wire, err := l.s.cfg.Realtime.Open(ctx, l.settings)
		select {
		case l.tasks <- func() { l.connected(wire, err) }:
		case <-l.ctx.Done():
			if wire != nil {
				wire.Close()
			}
		}
	})
}

func (l *realtimeConversation) connected(wire RealtimeSession, err error) {
	switch {
	case err != nil:
		l.fail(err)
	case l.ending != nil:
		wire.Close()
	default:
		l.session = wire
	}
}

func (l *realtimeConversation) close() {
	l.silence()
	l.saveTurn()
	if l.session != nil {
		l.session.Close()
	}
	l.endOwnSpeech()
	l.result.Transcript = transcriptText(l.history)
}

// sendAudio forwards the caller's audio without the agent's echo, unless the caller is not listened to at the moment.
func (l *realtimeConversation) sendAudio(pcm []int16) {
	loud := l.activity.frame(pcm)
	if loud {
		l.lastLoud = l.s.cfg.Clock.Now()
	}
	own := l.gated(pcm, loud)
	if l.session == nil || !l.greeted || l.ending != nil || !l.settings.Interruptible && len(l.items) > 0 {
		return
	}
	l.session.SendAudio(own)
}

// say speaks a text with our own synthesiser. If ending is not nil the conversation ends after it.
func (l *realtimeConversation) say(ending *Result, text string) {
	l.silence()
	l.endOwnSpeech()
	p := l.s.newSpeech(l.ctx, l.caller, l.settings)
	p.add(text)
	p.finish()
	p.release()
	l.ownSpeech, l.ending = p, ending
}

// endOwnSpeech stops the speech of our own synthesiser.
func (l *realtimeConversation) endOwnSpeech() {
	if l.ownSpeech == nil {
		return
	}
	l.ownSpeech.stop()
	text, _ := l.ownSpeech.playedText()
	began, ended := l.ownSpeech.playedSpan()
	l.log.add(true, text, began, ended)
	l.ownSpeech = nil
}

// finishWith ends the conversation with an announcement.
func (l *realtimeConversation) finishWith(r Result, p phrase) {
	l.waitingSince = time.Time{}
	l.say(&r, phraseIn(l.settings.Language, p))
}

// fail ends the conversation after an error of the engine.
func (l *realtimeConversation) fail(err error) {
	if l.ending != nil {
		return
	}
	if l.ownSpeech != nil { // the disclosure is always played to its end
		l.engineErr = err
		return
	}
	l.s.cfg.Log.Warn("voice agent failed", "call", l.settings.CallID, "err", err)
	l.finishWith(Result{Outcome: Failed, Reason: "the engine: " + err.Error()}, apology)
}

// tick runs every 20 ms.
func (l *realtimeConversation) tick(now time.Time) {
	if l.ownSpeech != nil {
		if !l.ownSpeech.isOver() {
			return
		}
		_, _, err := l.ownSpeech.timestamps()
		l.endOwnSpeech()
		l.idleSince = now
		if err != nil && l.ending == nil {
			l.ending = &Result{Outcome: Failed, Reason: err.Error()}
		}
	}
	l.checkPlayed(now)
	switch {
	case l.isStalled(now) && l.ending != nil:
		l.result = l.ending
	case l.isStalled(now):
		l.fail(errAnswerTimeout)
	case len(l.items) > 0:
	case l.ending != nil && !l.toolsRunning:
		l.result = l.ending
	case l.ending != nil:
	case l.engineErr != nil:
		l.fail(l.engineErr)
	case l.session == nil: // connecting
	case !l.greeted:
		l.greet(now)
	case now.Sub(l.began) > l.settings.MaxDuration:
		l.finishWith(Result{Outcome: Handoff, Reason: "the longest time is over"}, connecting)
	case l.digits != "" && now.Sub(l.lastKey) > keyTimeout:
		l.answerKeys(now)
	case l.waitingSince.IsZero() && !l.callerSpeaking && !l.toolsRunning && !l.idleSince.IsZero() && now.Sub(l.idleSince) > silenceTimeout:
		l.promptSilentCaller(now)
	}
}

// isStalled reports whether the caller has heard nothing for stallTimeout although the engine owes audio.
func (l *realtimeConversation) isStalled(now time.Time) bool {
	since := l.silentSince()
	return !since.IsZero() && now.Sub(since) > l.s.stall
}

// silentSince returns the start of a silence that the engine has to end; zero if there is none.
func (l *realtimeConversation) silentSince() time.Time {
	switch {
	case l.engineErr != nil:
	case len(l.items) > 0:
		return l.items[0].silentSince()
	case l.ending != nil:
	case l.callerSpeaking && l.turn != nil: // the engine may have missed the end
		return later(l.turn.began, l.lastLoud)
	case !l.waitingSince.IsZero():
		return later(l.waitingSince, l.idleSince)
	}
	return time.Time{}
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// greet requests the greeting. The silence before it began with the end of the disclosure.
func (l *realtimeConversation) greet(now time.Time) {
	l.greeted, l.waitingSince = true, l.idleSince
	l.request(now, func() { l.session.Say(l.settings.Greeting) })
}

// request makes the engine speak, and starts the timeout for its answer unless the caller waits already.
func (l *realtimeConversation) request(now time.Time, how func()) {
	if l.waitingSince.IsZero() {
		l.waitingSince = now
	}
	how()
}

// promptSilentCaller asks a silent caller, and ends the conversation after maxSilencePrompts.
func (l *realtimeConversation) promptSilentCaller(now time.Time) {
	if l.silencePrompts++; l.silencePrompts > maxSilencePrompts {
		l.result = &Result{Outcome: Silence, Reason: "the caller said nothing"}
		return
	}
	l.request(now, func() { l.session.Say(phraseIn(l.settings.Language, stillThere)) })
}

// handleKeys processes the keys the caller pressed.
func (l *realtimeConversation) handleKeys() {
	for {
		key, ok := l.caller.TakeKey()
		switch {
		case !ok:
			return
		case l.ending != nil || l.session == nil || !l.greeted:
		case key == personKey && l.digits == "" && l.settings.Handoff:
			l.finishWith(Result{Outcome: Handoff, Reason: "the caller pressed 0"}, connecting)
		case key == '#' && l.digits != "":
			l.answerKeys(l.s.cfg.Clock.Now())
		case len(l.digits) < maxDigits:
			l.digits, l.lastKey = l.digits+string(key), l.s.cfg.Clock.Now()
			if l.settings.Interruptible {
				l.interrupt()
			}
		}
	}
}

// answerKeys sends the pressed keys to the engine as text.
func (l *realtimeConversation) answerKeys(now time.Time) {
	text := keysPrefix + l.digits
	l.digits = ""
	l.turnStarted()
	if l.ending != nil {
		return
	}
	l.callerSpeaking = false
	l.turn.At, l.turn.last, l.turn.Heard = l.lastKey, l.lastKey, text
	l.addHistory("user", text)
	l.log.add(false, text, l.lastKey, l.lastKey)
	l.request(now, func() { l.session.SendText(text) })
}

func (l *realtimeConversation) addHistory(role, text string) {
	if text != "" {
		l.history = append(l.history, Message{Role: role, Text: text})
		l.history = slices.Delete(l.history, 0, max(len(l.history)-2*transcriptLines, 0))
	}
}
