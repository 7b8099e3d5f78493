package voiceagent

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Time limits of a reply.
const (
	firstWordTimeout = 8 * time.Second  // until the first word or tool
	replyTimeout     = 30 * time.Second // until the last
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
	r := &pendingReply{speech: t.s.newSpeech(t.ctx, t.caller, t.settings), cancel: cancel, began: t.s.Clock.Now()}
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
	slow := time.AfterFunc(firstWordTimeout, cancel)
	defer slow.Stop()
	begun := false
	calls, err = t.model.Reply(ctx, told, func(text string) {
		if !begun && text != "" {
			begun = true
			slow.Stop()
			now := t.s.Clock.Now()
			t.post(func() { r.first = now })
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
