package voiceagent

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The limits of thinking.
const (
	firstThought = 8 * time.Second  // until the first word or tool
	wholeThought = 30 * time.Second // until the last
)

var errSlow = errors.New("no answer in time")

// A reply is an answer being thought of. It is in private until its speech is released.
type reply struct {
	speech *speech
	cancel context.CancelFunc
	began  time.Time

	// of the conversation's goroutine, once it is done
	done  bool
	calls []Invocation
	err   error
	told  bool // its words are in the conversation already

	first time.Time // the first word; the conversation's, with the first message
}

// think begins to answer what was told so far.
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

// thinks has the mind reply, and cuts what it says into parts.
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
		return nil, fmt.Errorf("the mind: %w", err)
	}
	return calls, nil
}

// drop gives up a reply that nobody wants any more.
func (r *reply) drop() {
	r.cancel()
	r.speech.stop()
}
