package voiceagent

import (
	"context"
	"strings"
	"sync"
	"time"

	"soniq/internal/protocol/media"
)

// The pace and the limits of a conversation.
const (
	beat       = 20 * time.Millisecond
	preRoll    = 700 * time.Millisecond // of audio kept from before somebody was heard to speak
	mostSpeech = 15 * time.Second       // without a pause
	checksAt   = 1200 * time.Millisecond
	hearLimit  = 10 * time.Second // to be understood
	awaits     = 7 * time.Second  // in silence, before the caller is asked again
	asksAgain  = 2                // times
	mishears   = 2                // times in a row; then somebody else is to listen
	mostTurns  = 200
	keysPause  = 1500 * time.Millisecond
	personKey  = '0'
)

// A talk is one conversation. Everything of it happens in its own goroutine; what others find out is posted to it.
type talk struct {
	s     *Service
	ctx   context.Context
	line  Caller
	set   Setting
	mind  Mind
	posts chan func()
	work  sync.WaitGroup
	saves sync.WaitGroup

	act    *activity
	recent []int16 // the last of the caller's audio
	rest   []int16 // less than a frame
	utter  *utterance
	digits string
	keyed  time.Time

	told     []Message
	speech   *speech // what the agent says, or has just said
	reply    *reply  // that speech is of it; nil where it is of nobody's thinking
	turn     *Turn
	acting   bool // a tool is at work
	rounds   int  // of tools, in this turn
	used     int  // tools, in the conversation
	turns    int
	began    time.Time
	idle     time.Time // since when nobody has said anything
	asked    int       // times
	misheard int       // times in a row
	ending   *Result   // once the speech is over
	result   *Result
	filler   *media.Clip
	next     *reply // what follows once the speech is over
	diary    *diary
}

// Talk talks to a caller until the conversation is over.
func (s *Service) Talk(ctx context.Context, line Caller, set Setting) Result {
	if s.Duplex != nil {
		return s.talkLive(ctx, line, set)
	}
	ctx, cancel := context.WithCancel(ctx)
	t := &talk{s: s, ctx: ctx, line: line, set: set, mind: s.Mind(set), posts: make(chan func(), 16), act: newActivity(), began: s.Now()}
	t.diary = s.keepDiary(ctx, set)
	defer func() {
		cancel()
		t.work.Wait()
		t.saves.Wait()
		t.diary.close()
	}()
	line.Step("ai_agent.began", map[string]any{"flow_id": set.FlowID, "engine": t.mind.Engine()})
	r := t.run()
	line.Step("ai_agent.ended", map[string]any{"outcome": orGone(r.Outcome), "reason": r.Reason, "turns": t.turns, "seconds": int(s.Now().Sub(t.began).Seconds())})
	return r
}

func orGone(outcome string) string {
	if outcome == Gone {
		return "gone"
	}
	return outcome
}

// run is the conversation.
func (t *talk) run() Result {
	pcm, stop, err := t.line.Listen(t.ctx)
	if err != nil {
		return Result{Reason: "the caller hung up"}
	}
	defer stop()
	t.prepare()
	t.greet()
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for t.result == nil {
		select {
		case piece := <-pcm:
			t.audio(piece)
		case f := <-t.posts:
			f()
		case <-t.line.Pressed():
			t.pressed()
		case <-tick.C:
			t.tick()
		case <-t.ctx.Done():
			t.result = &Result{Reason: "the caller hung up"}
		}
	}
	t.close()
	return *t.result
}

// close ends what is still going on.
func (t *talk) close() {
	t.forgetUtterance()
	t.settle()
	t.store()
	t.result.Words = transcript(t.told)
}

// transcript is the last of a conversation, a line for each who spoke.
func transcript(told []Message) string {
	var lines []string
	for _, m := range told {
		switch {
		case m.Text == "":
		case m.Role == "user":
			lines = append(lines, "Caller: "+m.Text)
		case m.Role == "assistant":
			lines = append(lines, "Agent: "+m.Text)
		}
	}
	return strings.Join(lines[max(len(lines)-wordsTold, 0):], "\n")
}

const wordsTold = 12

// post has something done in the conversation's goroutine, where it is still going on.
func (t *talk) post(f func()) {
	select {
	case t.posts <- f:
	case <-t.ctx.Done():
	}
}

// tick is done every 20 ms.
func (t *talk) tick() {
	now := t.s.Now()
	if t.speech != nil && t.speech.isOver() {
		t.spoken(now)
	}
	if t.result != nil || t.ending != nil {
		return
	}
	switch {
	case now.Sub(t.began) > t.set.Longest:
		t.handOver("the longest time is over", t.phrase(handing))
	case t.digits != "" && now.Sub(t.keyed) > keysPause:
		t.typed()
	case t.utter != nil:
		t.attend(now)
	case t.speech == nil && !t.acting && !t.idle.IsZero() && now.Sub(t.idle) > awaits:
		t.silent(now)
	}
}

// spoken is a speech that was heard to its end.
func (t *talk) spoken(now time.Time) {
	if t.reply != nil && !t.reply.done || t.acting {
		return // more may come of it
	}
	_, _, err := t.speech.stamps()
	next := t.next
	t.next = nil
	t.settle()
	t.idle = now
	switch {
	case next != nil && t.ending == nil && err == nil:
		t.goOn(next)
	case t.ending != nil:
		t.result = t.ending
	case err != nil:
		t.result = &Result{Outcome: Failed, Reason: err.Error()}
	}
}

// say says something that nobody thought of; then, where ending is not nil, the conversation is over.
func (t *talk) say(ending *Result, guarded int, texts ...string) {
	t.settle()
	p := t.s.newSpeech(t.ctx, t.line, t.set)
	p.guarded = guarded
	if ending != nil {
		p.guarded = len(texts)
	}
	for _, text := range texts {
		p.add(text)
	}
	p.finish()
	p.release()
	t.speech, t.ending = p, ending
}

// handOver ends the conversation: the caller is led to a person.
func (t *talk) handOver(reason, phrase string) {
	t.finishWith(Result{Outcome: Handoff, Reason: reason}, phrase)
}

func (t *talk) finishWith(r Result, phrase string) {
	t.forgetUtterance()
	t.say(&r, 0, phrase)
}

// broken ends the conversation where an engine does not do its work.
func (t *talk) broken(err error) {
	t.s.Log.Warn("voice agent failed", "call", t.set.CallID, "err", err)
	t.finishWith(Result{Outcome: Failed, Reason: err.Error()}, t.phrase(apology))
}

// silent asks a caller who says nothing, and gives up at last.
func (t *talk) silent(now time.Time) {
	if t.asked++; t.asked > asksAgain {
		t.result = &Result{Outcome: Silence, Reason: "the caller said nothing"}
		return
	}
	t.idle = now
	t.say(nil, 0, t.phrase(stillThere))
}

// settle ends the agent's turn: what was heard of it stays in the conversation.
func (t *talk) settle() {
	if t.next != nil {
		t.next.drop()
		t.next = nil
	}
	if t.speech == nil {
		return
	}
	whole := t.speech.isOver()
	if t.reply != nil {
		t.reply.cancel()
	}
	t.speech.stop()
	text, all := t.speech.heard()
	if text != "" && (t.reply == nil || !t.reply.told) {
		t.told = append(t.told, Message{Role: "assistant", Text: text})
	}
	began, ended := t.speech.span()
	t.diary.say(true, text, began, ended)
	t.keep(text, whole && all)
	t.speech, t.reply = nil, nil
}
