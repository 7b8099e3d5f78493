package voiceagent

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Time limits of a reply.
const (
	firstThought = 8 * time.Second  // until the first word or tool
	wholeThought = 30 * time.Second // until the last
)

var errSlow = errors.New("no answer in time")

// pendingReply is a reply that is being generated. It is not played until its speech is released.
type reply struct {
	speech *speech
	cancel context.CancelFunc
	began  time.Time

	// owned by the conversation's goroutine, valid once done
	done  bool
	calls []Invocation
	err   error
	told  bool // its text is already in the history

	first time.Time // time of the first word; owned by the conversation's goroutine
}

// startReply starts generating a reply to the history so far.
func (t *talk) think(told []Message) *reply {
	ctx, cancel := context.WithTimeoutCause(t.ctx, wholeThought, errSlow)
	r := &reply{speech: t.s.newSpeech(t.ctx, t.line, t.set), cancel: cancel, began: t.s.Now()}
	r.speech.filler, r.speech.fleeting = t.filler, !isScripted(t.mind)
	told = append([]Message(nil), told...)
	t.work.Go(func() {
		defer cancel()
		calls, err := t.thinks(ctx, cancel, r, told)
		r.speech.finish()
		t.post(func() { r.calls, r.err, r.done = calls, err, true; t.thought(r) })
	})
	return r
}

// generate lets the model reply, and splits the text into parts for synthesis.
func (t *talk) thinks(ctx context.Context, cancel context.CancelFunc, r *reply, told []Message) (calls []Invocation, err error) {
	var cut clauses
	slow := time.AfterFunc(firstThought, cancel)
	defer slow.Stop()
	begun := false
	calls, err = t.mind.Reply(ctx, told, func(text string) {
		if !begun && text != "" {
			begun = true
			slow.Stop()
			now := t.s.Now()
			t.post(func() { r.first = now })
		}
		for _, part := range cut.add(text) {
			r.speech.add(part)
		}
	})
	r.speech.add(cut.end())
	if err != nil && ctx.Err() != nil && t.ctx.Err() == nil {
		err = errSlow
	}
	if err != nil {
		return nil, fmt.Errorf("the language model: %w", err)
	}
	return calls, nil
}

// discard cancels a reply that is no longer needed.
func (r *reply) drop() {
	r.cancel()
	r.speech.stop()
}
