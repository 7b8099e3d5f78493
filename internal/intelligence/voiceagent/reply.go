package voiceagent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Time limits of a reply.
const (
	// stallTimeout is the longest silence of an agent. An engine that has nothing new to say for that long has failed,
	// whether it has begun to answer or not: transcriber, language model, synthesiser, or RealtimeEngine.
	stallTimeout = 8 * time.Second
	replyTimeout = 30 * time.Second // until the last word
)

var errReplyTimeout = errors.New("no answer in time")

// pendingReply is a reply that is being generated. It is not played until its speech is released.
type pendingReply struct {
	speech *agentSpeech
	cancel context.CancelFunc
	began  time.Time

	// owned by the conversation's goroutine, valid once done
	done      bool
	calls     []ToolCall
	err       error
	inHistory bool // its text is already in the history

	first time.Time // time of the first word; owned by the conversation's goroutine
}

// startReply starts generating a reply to the history so far.
func (t *conversation) startReply(told []Message) *pendingReply {
	ctx, cancel := context.WithTimeoutCause(t.ctx, replyTimeout, errReplyTimeout)
	r := &pendingReply{speech: t.s.newSpeech(t.ctx, t.caller, t.settings), cancel: cancel, began: t.s.cfg.Clock.Now()}
	r.speech.filler, r.speech.uncached = t.filler, !isScripted(t.model)
	told = append([]Message(nil), told...)
	t.work.Go(func() {
		defer cancel()
		calls, err := t.generate(ctx, cancel, r, told)
		r.speech.finish()
		t.post(func() { r.calls, r.err, r.done = calls, err, true; t.replyDone(r) })
	})
	return r
}

// generate lets the model reply, and splits the text into parts for synthesis.
func (t *conversation) generate(ctx context.Context, cancel context.CancelFunc, r *pendingReply, told []Message) (calls []ToolCall,
	err error) {
	var cut clauseSplitter
	stalled := time.AfterFunc(t.s.stall, cancel)
	defer stalled.Stop()
	begun := false
	calls, err = t.model.Reply(ctx, told, func(text string) {
		if strings.ContainsFunc(text, isSpoken) && ctx.Err() == nil {
			stalled.Reset(t.s.stall)
			if !begun {
				begun = true
				now := t.s.cfg.Clock.Now()
				t.post(func() { r.first = now })
			}
		}
		for _, part := range cut.add(text) {
			r.speech.add(part)
		}
	})
	r.speech.add(cut.end())
	if err != nil && ctx.Err() != nil && t.ctx.Err() == nil {
		err = errReplyTimeout
	}
	if err != nil {
		return nil, fmt.Errorf("the language model: %w", err)
	}
	return calls, nil
}

// discard cancels a reply that is no longer needed.
func (r *pendingReply) discard() {
	r.cancel()
	r.speech.stop()
}

// isStalled reports whether the caller has heard nothing for stallTimeout although the agent owes an answer: the
// model, a tool or the synthesiser hangs.
func (t *conversation) isStalled(now time.Time) bool {
	owes := t.utterance == nil && (t.reply != nil || t.toolsRunning)
	if owes && t.speech != nil {
		audible, _ := t.speech.audible()
		owes = !audible
	}
	if !owes || t.silentSince.IsZero() {
		t.silentSince = now
	}
	return owes && now.Sub(t.silentSince) > t.s.stall
}

// stalled ends the conversation after a silence. If the synthesiser is the reason, it cannot announce that.
func (t *conversation) stalled() {
	if t.speech != nil && t.speech.waitsForVoice() {
		t.s.cfg.Log.Warn("voice agent failed", "call", t.settings.CallID, "err", "the voice: "+errReplyTimeout.Error())
		t.result = &Result{Outcome: Failed, Reason: "the voice: " + errReplyTimeout.Error()}
		return
	}
	t.fail(errReplyTimeout)
}
