package voiceagent

import (
	"time"
)

// handleEvent processes an event of the session.
func (l *realtimeConversation) handleEvent(sign RealtimeEvent, more bool) {
	if !more {
		err := l.session.Err()
		l.session.Close()
		l.session = nil
		l.fail(err)
		return
	}
	switch sign.Kind {
	case SpeechStarted:
		if l.ending == nil && !l.toolsRunning {
			l.turnStarted()
		}
	case SpeechStopped:
		l.turnStopped(sign)
	case InputTranscribed:
		l.inputTranscribed(sign)
	case OutputAudio:
		l.outputAudio(sign)
	case OutputText:
		l.outputText(sign)
	case ResponseDone:
		l.outputComplete()
		l.responseDone(sign)
	}
}

// turnStarted starts a turn of the caller: the agent stops speaking.
func (l *realtimeConversation) turnStarted() {
	l.countCutOff()
	l.interrupt()
	l.saveTurn()
	l.callerSpeaking, l.silencePrompts, l.rounds, l.waitingSince = true, 0, 0, time.Time{}
	if l.turns++; l.turns > maxTurns {
		l.finishWith(Result{Outcome: Handoff, Reason: "too many turns"}, connecting)
		return
	}
	if l.cutOffs == maxCutOffs {
		l.finishWith(Result{Outcome: Handoff, Reason: "three answers in a row were cut off"}, connecting)
		return
	}
	now := l.s.cfg.Clock.Now()
	l.turn, l.inputItem = &Turn{At: now, Engine: l.engine, last: now, began: now}, ""
}

// countCutOff counts the consecutive answers of the engine that the caller interrupts.
func (l *realtimeConversation) countCutOff() {
	if l.turn != nil && len(l.items) > 0 {
		l.cutOffs++
		return
	}
	l.cutOffs = 0
}

// turnStopped ends the caller's turn and starts waiting for an answer.
func (l *realtimeConversation) turnStopped(sign RealtimeEvent) {
	if l.ending != nil || l.turn == nil {
		return
	}
	now := l.s.cfg.Clock.Now()
	l.callerSpeaking, l.inputItem = false, sign.Item
	l.turn.last = now.Add(-sign.SilentFor)
	l.turn.At = l.turn.last
	l.turn.Endpoint = l.turn.msSince(now)
	if len(l.pendingInputs) < maxItems {
		l.pendingInputs[sign.Item] = timeSpan{l.turn.began, l.turn.last}
	}
	l.waitingSince = now
}

// inputTranscribed records the text of the caller, which may arrive after the answer has begun.
func (l *realtimeConversation) inputTranscribed(sign RealtimeEvent) {
	when, is := l.pendingInputs[sign.Item]
	if !is {
		return
	}
	delete(l.pendingInputs, sign.Item)
	if l.turn != nil && sign.Item == l.inputItem {
		l.turn.Heard, l.turn.Transcribed = sign.Text, l.turn.msSince(l.s.cfg.Clock.Now())
	}
	l.addHistory("user", sign.Text)
	l.log.add(false, sign.Text, when.began, when.ended)
}

// responseDone processes the end of a response.
func (l *realtimeConversation) responseDone(sign RealtimeEvent) {
	switch {
	case l.ending != nil, sign.Cancelled:
	case sign.Err != nil:
		l.fail(sign.Err)
	case len(sign.ToolCalls) > 0:
		l.callTools(sign.ToolCalls)
	case l.callerSpeaking: // cancelled
	default:
		l.waitingSince = time.Time{}
		if len(l.items) == 0 {
			l.idleSince = l.s.cfg.Clock.Now()
		}
	}
}

// callTools calls the tools requested by a response.
func (l *realtimeConversation) callTools(calls []ToolCall) {
	l.rounds++
	l.toolCalls += len(calls)
	if l.rounds > maxToolRounds || l.toolCalls > maxToolCalls || len(calls) > maxParallelCalls {
		l.finishWith(Result{Outcome: Handoff, Reason: "too many tools were used"}, connecting)
		return
	}
	l.toolsRunning = true
	if l.waitingSince.IsZero() {
		l.waitingSince = l.s.cfg.Clock.Now()
	}
	l.work.Go(func() {
		all := make([]toolResult, len(calls))
		for i, call := range calls {
			all[i] = l.s.callTool(l.ctx, l.settings, call)
		}
		select {
		case l.tasks <- func() { l.toolsDone(all) }:
		case <-l.ctx.Done():
		}
	})
}

// toolsDone continues after tools were called.
func (l *realtimeConversation) toolsDone(all []toolResult) {
	l.toolsRunning = false
	if l.ending != nil {
		return
	}
	var end *Result
	var told []Message
	for _, d := range all {
		addToolStep(l.caller, d)
		if l.turn != nil {
			l.turn.Tools = append(l.turn.Tools, d.Name)
		}
		told = append(told, Message{Role: "tool", Text: d.answer, ToolCallID: d.ID})
		if end == nil {
			end = d.end
		}
	}
	switch {
	case end == nil:
		l.request(l.s.cfg.Clock.Now(), func() {
			if l.session != nil {
				l.session.SendToolResults(told)
			}
		})
	case len(l.items) > 0: // the engine has announced it itself
		l.ending = end
	default:
		l.finishWith(*end, closingPhrase(*end))
	}
}

// saveTurn stores the finished turn.
func (l *realtimeConversation) saveTurn() {
	x := l.turn
	l.turn = nil
	if x != nil && (x.Heard != "" || x.Said != "" || len(x.Tools) > 0) {
		l.s.saveTurn(l.ctx, l.caller, l.settings, *x, &l.pendingWrites)
	}
}
