package voiceagent

import (
	"context"
	"strings"
	"sync"
	"time"

	"soniq/internal/protocol/media"
)

// Timing and limits of a conversation.
const (
	beat       = 20 * time.Millisecond
	preRoll    = 700 * time.Millisecond // of audio kept from before speech was detected
	mostSpeech = 15 * time.Second       // without a pause
	checksAt   = 1200 * time.Millisecond
	hearLimit  = 10 * time.Second // to transcribe an utterance
	awaits     = 7 * time.Second  // of silence, before the caller is asked again
	asksAgain  = 2                // number of prompts
	mishears   = 2                // consecutive times; then the call is handed over
	mostTurns  = 200
	keysPause  = 1500 * time.Millisecond
	personKey  = '0'
)

// conversation is one conversation with transcriber, language model and synthesiser. All state belongs to one
// goroutine; other goroutines post functions to it.
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
	rest   []int16 // rest of less than a frame
	utter  *utterance
	digits string
	keyed  time.Time

	told     []Message
	speech   *speech // current or last speech of the agent
	reply    *reply  // the reply of that speech; nil for an announcement
	turn     *Turn
	acting   bool // a tool is running
	rounds   int  // rounds of tool calls in this turn
	used     int  // tool calls in the conversation
	turns    int
	began    time.Time
	idle     time.Time // start of the current silence
	asked    int       // number of silence prompts
	misheard int       // consecutive times
	ending   *Result   // result once the speech has ended
	result   *Result
	filler   *media.Clip
	next     *reply // reply to play once the speech has ended
	diary    *diary
}

// Converse runs a conversation with a caller until it ends.
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

// run is the event loop of the conversation.
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

// close ends the caller's and the agent's utterances.
func (t *talk) close() {
	t.forgetUtterance()
	t.settle()
	t.store()
	t.result.Words = transcript(t.told)
}

// transcriptText returns the last messages of a conversation, a line each.
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

// post runs a function in the conversation's goroutine, unless the conversation has ended.
func (t *talk) post(f func()) {
	select {
	case t.posts <- f:
	case <-t.ctx.Done():
	}
}

// tick runs every 20 ms.
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

// speechEnded continues after a speech was played to its end.
func (t *talk) spoken(now time.Time) {
	if t.reply != nil && !t.reply.done || t.acting {
		return // more may follow
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

// say speaks an announcement. If ending is not nil the conversation ends after it.
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

// handOver ends the conversation with a transfer to a person.
func (t *talk) handOver(reason, phrase string) {
	t.finishWith(Result{Outcome: Handoff, Reason: reason}, phrase)
}

func (t *talk) finishWith(r Result, phrase string) {
	t.forgetUtterance()
	t.say(&r, 0, phrase)
}

// fail ends the conversation after an error of an engine.
func (t *talk) broken(err error) {
	t.s.Log.Warn("voice agent failed", "call", t.set.CallID, "err", err)
	t.finishWith(Result{Outcome: Failed, Reason: err.Error()}, t.phrase(apology))
}

// promptSilentCaller asks a silent caller, and ends the conversation after maxSilencePrompts.
func (t *talk) silent(now time.Time) {
	if t.asked++; t.asked > asksAgain {
		t.result = &Result{Outcome: Silence, Reason: "the caller said nothing"}
		return
	}
	t.idle = now
	t.say(nil, 0, t.phrase(stillThere))
}

// endAgentTurn ends the agent's turn and adds the text that was played to the history.
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
