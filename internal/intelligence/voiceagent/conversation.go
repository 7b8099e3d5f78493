package voiceagent

import (
	"context"
	"strings"
	"sync"
	"time"

	"soniq/internal/protocol/media/clip"
)

// Timing and limits of a conversation.
const (
	frameDuration     = 20 * time.Millisecond
	preRoll           = 700 * time.Millisecond // of audio kept from before speech was detected
	maxUtterance      = 15 * time.Second       // without a pause
	bargeInCheckAfter = 1200 * time.Millisecond
	silenceTimeout    = 7 * time.Second // of silence, before the caller is asked again
	maxSilencePrompts = 2               // number of prompts
	maxMisheard       = 2               // consecutive times; then the call is handed over
	maxTurns          = 200
	keyTimeout        = 1500 * time.Millisecond
	personKey         = '0'
)

// conversation is one conversation with transcriber, language model and synthesiser. All state belongs to one
// goroutine; other goroutines post functions to it.
type conversation struct {
	s             *Service
	ctx           context.Context
	caller        Caller
	settings      ConversationSettings
	model         LanguageModel
	tasks         chan func()
	work          sync.WaitGroup
	pendingWrites sync.WaitGroup

	activity     *voiceActivity
	recent       []int16 // the last of the caller's audio
	partialFrame []int16 // rest of less than a frame
	utterance    *callerUtterance
	digits       string
	lastKey      time.Time

	history        []Message
	speech         *agentSpeech // current or last speech of the agent
	previous       *agentSpeech // the speech before it
	echo           echoDetector
	echoes         bool          // the agent's words came back on this line: only words stop the agent
	noEcho         int           // consecutive loud frames that are no echo
	cutOffs        int           // consecutive answers that the caller interrupted
	silentSince    time.Time     // start of the silence while the agent owes an answer
	reply          *pendingReply // the reply of that speech; nil for an announcement
	turn           *Turn
	toolsRunning   bool // a tool is running
	rounds         int  // rounds of tool calls in this turn
	toolCalls      int  // tool calls in the conversation
	turns          int
	began          time.Time
	idleSince      time.Time // start of the current silence
	silencePrompts int       // number of silence prompts
	misheard       int       // consecutive times
	ending         *Result   // result once the speech has ended
	result         *Result
	filler         *clip.Clip
	nextReply      *pendingReply // reply to play once the speech has ended
	log            *utteranceLog
}

// Converse runs a conversation with a caller until it ends.
func (s *Service) Converse(ctx context.Context, line Caller, set ConversationSettings) Result {
	if s.cfg.Realtime != nil {
		return s.converseRealtime(ctx, line, set)
	}
	ctx, cancel := context.WithCancel(ctx)
	t := &conversation{s: s, ctx: ctx, caller: line, settings: set, model: s.cfg.Models.NewModel(set), tasks: make(chan func(), 16),
		activity: newVoiceActivity(), began: s.cfg.Clock.Now()}
	t.log = s.newUtteranceLog(ctx, set)
	defer func() {
		cancel()
		t.work.Wait()
		t.pendingWrites.Wait()
		t.log.close()
	}()
	line.AddEntry("ai_agent.started", map[string]any{"flow_id": set.FlowID, "engine": t.model.Engine()})
	r := t.run()
	line.AddEntry("ai_agent.ended", map[string]any{"outcome": outcomeName(r.Outcome), "reason": r.Reason, "turns": t.turns,
		"seconds": int(s.cfg.Clock.Now().Sub(t.began).Seconds())})
	return r
}

func outcomeName(outcome string) string {
	if outcome == CallerGone {
		return "gone"
	}
	return outcome
}

// run is the event loop of the conversation.
func (t *conversation) run() Result {
	pcm, stop, err := t.caller.Listen(t.ctx)
	if err != nil {
		return Result{Reason: "the caller hung up"}
	}
	defer stop()
	t.prepareFiller()
	t.greet()
	tick := time.NewTicker(frameDuration)
	defer tick.Stop()
	for t.result == nil {
		select {
		case piece := <-pcm:
			t.handleAudio(piece)
		case f := <-t.tasks:
			f()
		case <-t.caller.KeyPressed():
			t.handleKeys()
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
func (t *conversation) close() {
	t.dropUtterance()
	t.endAgentTurn()
	t.saveTurn()
	t.result.Transcript = transcriptText(t.history)
}

// transcriptText returns the last messages of a conversation, a line each.
func transcriptText(told []Message) string {
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
	return strings.Join(lines[max(len(lines)-transcriptLines, 0):], "\n")
}

const transcriptLines = 12

// post runs a function in the conversation's goroutine, unless the conversation has ended.
func (t *conversation) post(f func()) {
	select {
	case t.tasks <- f:
	case <-t.ctx.Done():
	}
}

// tick runs every 20 ms.
func (t *conversation) tick() {
	now := t.s.cfg.Clock.Now()
	if t.speech != nil && t.speech.isOver() {
		t.speechEnded(now)
	}
	if t.result != nil || t.ending != nil {
		return
	}
	switch {
	case now.Sub(t.began) > t.settings.MaxDuration:
		t.handOver("the longest time is over", t.phrase(connecting))
	case t.digits != "" && now.Sub(t.lastKey) > keyTimeout:
		t.answerKeys()
	case t.utterance != nil:
		t.isStalled(now)
		t.checkUtterance(now)
	case t.isStalled(now):
		t.stalled()
	case t.speech == nil && !t.toolsRunning && !t.idleSince.IsZero() && now.Sub(t.idleSince) > silenceTimeout:
		t.promptSilentCaller(now)
	}
}

// speechEnded continues after a speech was played to its end.
func (t *conversation) speechEnded(now time.Time) {
	if t.reply != nil && !t.reply.done || t.toolsRunning {
		return // more may follow
	}
	_, _, err := t.speech.timestamps()
	next, reply := t.nextReply, t.reply
	t.nextReply = nil
	t.endAgentTurn()
	t.idleSince = now
	switch {
	case next != nil && t.ending == nil && err == nil:
		t.playReply(next)
	case t.ending != nil:
		t.result = t.ending
	case err != nil:
		t.result = &Result{Outcome: Failed, Reason: err.Error()}
	case reply != nil && reply.err != nil:
		t.fail(reply.err)
	}
}

// say speaks an announcement. If ending is not nil the conversation ends after it.
func (t *conversation) say(ending *Result, guarded int, texts ...string) {
	t.endAgentTurn()
	p := t.s.newSpeech(t.ctx, t.caller, t.settings)
	p.uninterruptible = guarded
	if ending != nil {
		p.uninterruptible = len(texts)
	}
	for _, text := range texts {
		p.add(text)
	}
	p.finish()
	p.release()
	t.speech, t.ending = p, ending
}

// handOver ends the conversation with a transfer to a person.
func (t *conversation) handOver(reason, phrase string) {
	t.finishWith(Result{Outcome: Handoff, Reason: reason}, phrase)
}

func (t *conversation) finishWith(r Result, phrase string) {
	t.dropUtterance()
	t.say(&r, 0, phrase)
}

// fail ends the conversation after an error of an engine.
func (t *conversation) fail(err error) {
	t.s.cfg.Log.Warn("voice agent failed", "call", t.settings.CallID, "err", err)
	t.finishWith(Result{Outcome: Failed, Reason: err.Error()}, t.phrase(apology))
}

// promptSilentCaller asks a silent caller, and ends the conversation after maxSilencePrompts.
func (t *conversation) promptSilentCaller(now time.Time) {
	if t.silencePrompts++; t.silencePrompts > maxSilencePrompts {
		t.result = &Result{Outcome: Silence, Reason: "the caller said nothing"}
		return
	}
	t.idleSince = now
	t.say(nil, 0, t.phrase(stillThere))
}

// endAgentTurn ends the agent's turn and adds the text that was played to the history.
func (t *conversation) endAgentTurn() {
	if t.nextReply != nil {
		t.nextReply.discard()
		t.nextReply = nil
	}
	if t.speech == nil {
		return
	}
	whole := t.speech.isOver()
	if t.reply != nil {
		t.reply.cancel()
	}
	t.speech.stop()
	text, all := t.speech.playedText()
	if text != "" && (t.reply == nil || !t.reply.inHistory) {
		t.history = append(t.history, Message{Role: "assistant", Text: text})
	}
	began, ended := t.speech.playedSpan()
	t.log.add(true, text, began, ended)
	t.setSaid(text, whole && all)
	t.speech, t.reply, t.previous = nil, nil, t.speech
}
