package voiceagent

import (
	"time"
)

// handleEvent processes an event of the session.
func (l *live) sign(sign Sign, more bool) {
	if !more {
		err := l.wire.Err()
		l.wire.Close()
		l.wire = nil
		l.broken(err)
		return
	}
	switch sign.Kind {
	case Began:
		if l.ending == nil && !l.acting {
			l.begins()
		}
	case Stopped:
		l.stopped(sign)
	case Heard:
		l.heard(sign)
	case Sound:
		l.sound(sign)
	case Said:
		l.said(sign)
	case Done:
		l.complete()
		l.done(sign)
	}
}

// turnStarted starts a turn of the caller: the agent stops speaking.
func (l *live) begins() {
	l.interrupt()
	l.keep()
	l.caller, l.asked, l.rounds, l.waits = true, 0, 0, time.Time{}
	if l.turns++; l.turns > mostTurns {
		l.finishWith(Result{Outcome: Handoff, Reason: "too many turns"}, handing)
		return
	}
	now := l.s.Now()
	l.turn, l.hears = &Turn{At: now, Engine: l.engine, last: now, began: now}, ""
}

// turnStopped ends the caller's turn and starts waiting for an answer.
func (l *live) stopped(sign Sign) {
	if l.ending != nil || l.turn == nil {
		return
	}
	now := l.s.Now()
	l.caller, l.hears = false, sign.Item
	l.turn.last = now.Add(-sign.Quiet)
	l.turn.At = l.turn.last
	l.turn.Endpoint = l.turn.since(now)
	if len(l.unheard) < mostItems {
		l.unheard[sign.Item] = span{l.turn.began, l.turn.last}
	}
	l.waits = now
}

// inputTranscribed records the text of the caller, which may arrive after the answer has begun.
func (l *live) heard(sign Sign) {
	when, is := l.unheard[sign.Item]
	if !is {
		return
	}
	delete(l.unheard, sign.Item)
	if l.turn != nil && sign.Item == l.hears {
		l.turn.Heard, l.turn.Understood = sign.Text, l.turn.since(l.s.Now())
	}
	l.told("user", sign.Text)
	l.diary.say(false, sign.Text, when.began, when.ended)
}

// responseDone processes the end of a response.
func (l *live) done(sign Sign) {
	switch {
	case l.ending != nil, sign.Void:
	case sign.Err != nil:
		l.broken(sign.Err)
	case len(sign.Calls) > 0:
		l.use(sign.Calls)
	case l.caller: // cancelled
	default:
		l.waits = time.Time{}
		if len(l.items) == 0 {
			l.idle = l.s.Now()
		}
	}
}

// callTools calls the tools requested by a response.
func (l *live) use(calls []Invocation) {
	l.rounds++
	l.used += len(calls)
	if l.rounds > mostRounds || l.used > mostUsed || len(calls) > mostAtOnce {
		l.finishWith(Result{Outcome: Handoff, Reason: "too many tools were used"}, handing)
		return
	}
	l.acting, l.waits = true, time.Time{}
	l.work.Go(func() {
		all := make([]done, len(calls))
		for i, call := range calls {
			all[i] = l.s.invoke(l.ctx, l.set, call)
		}
		select {
		case l.posts <- func() { l.acted(all) }:
		case <-l.ctx.Done():
		}
	})
}

// toolsDone continues after tools were called.
func (l *live) acted(all []done) {
	l.acting = false
	if l.ending != nil {
		return
	}
	var end *Result
	var told []Message
	for _, d := range all {
		step(l.line, d)
		if l.turn != nil {
			l.turn.Tools = append(l.turn.Tools, d.Name)
		}
		told = append(told, Message{Role: "tool", Text: d.answer, Of: d.ID})
		if end == nil {
			end = d.end
		}
	}
	switch {
	case end == nil:
		l.ask(l.s.Now(), func() {
			if l.wire != nil {
				l.wire.Answer(told)
			}
		})
	case len(l.items) > 0: // the engine has announced it itself
		l.ending = end
	default:
		l.finishWith(*end, lastWords(*end))
	}
}

// saveTurn stores the finished turn.
func (l *live) keep() {
	x := l.turn
	l.turn = nil
	if x != nil && (x.Heard != "" || x.Said != "" || len(x.Tools) > 0) {
		l.s.store(l.ctx, l.line, l.set, *x, &l.saves)
	}
}
