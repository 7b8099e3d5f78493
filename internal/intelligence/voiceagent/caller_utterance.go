package voiceagent

import (
	"context"
	"errors"
	"time"
)

// callerUtterance is the current utterance of the caller, from the detection of speech on.
type callerUtterance struct {
	pcm           []int16
	began         time.Time
	loud          int           // loud frames
	last          time.Time     // last loud frame
	silent        time.Duration // audio since the last loud frame
	heard         time.Time     // last frame
	requestedAt   int           // loud frames when the transcription was requested; -1: not requested since
	transcribed   bool          // the transcription is complete
	text          string
	transcribedAt time.Time // time of the transcription
	err           error
	cancel        context.CancelFunc
	speculative   *pendingReply // speculative reply
	bargeIn       bool          // it interrupts the agent (barge-in)
	checked       bool          // it was transcribed once while it went on, to check for words
	ownWords      bool          // it is an echo of the agent
}

// frameSamples is 20 ms at 8 kHz.
const frameSamples = 160

// handleAudio processes audio of the caller.
func (t *conversation) handleAudio(piece []int16) {
	t.partialFrame = append(t.partialFrame, piece...)
	n := 0
	for ; n+frameSamples <= len(t.partialFrame); n += frameSamples {
		t.handleFrame(t.partialFrame[n : n+frameSamples])
	}
	t.partialFrame = append(t.partialFrame[:0], t.partialFrame[n:]...)
}

func (t *conversation) handleFrame(pcm []int16) {
	loud := t.activity.frame(pcm)
	if u := t.utterance; u != nil {
		u.addFrame(pcm, loud, t.s.cfg.Clock.Now())
		return
	}
	t.recent = append(t.recent, pcm...)
	if most := samplesOf(preRoll); len(t.recent) > most {
		t.recent = append(t.recent[:0], t.recent[len(t.recent)-most:]...)
	}
	if loud && t.isListening() && t.activity.loudFrames() >= t.speechThreshold() && !t.hearsEcho(t.s.cfg.Clock.Now()) {
		t.startUtterance()
	}
}

func samplesOf(d time.Duration) int { return int(d * 8 / time.Millisecond) }

// isListening reports whether a caller who speaks now is listened to.
func (t *conversation) isListening() bool {
	return t.ending == nil && (t.speech == nil || t.speech.isOver() || t.speech.interruptible())
}

// speechThreshold returns how many loud frames count as speech now.
func (t *conversation) speechThreshold() int {
	if t.speech == nil {
		return speechFrames
	}
	switch audible, soon := t.speech.audible(); {
	case audible && soon:
		return bargeInFramesEarly
	case audible:
		return bargeInFrames
	}
	return speechFrames
}

// startUtterance starts an utterance of the caller. The agent pauses until the transcription shows whether there are
// words.
func (t *conversation) startUtterance() {
	now := t.s.cfg.Clock.Now()
	u := &callerUtterance{pcm: append([]int16(nil), t.recent...), began: now.Add(-windowFrames * frameDuration),
		loud: t.activity.loudFrames(), last: now, heard: now, requestedAt: -1}
	t.recent = t.recent[:0]
	t.utterance, t.idleSince, t.noEcho = u, time.Time{}, 0
	if t.speech != nil && !t.speech.isOver() {
		u.bargeIn, _ = t.speech.audible()
		if !t.echoes {
			t.speech.pause()
		}
	}
}

// addFrame adds 20 ms. If the caller goes on speaking, the transcription and the speculative reply are discarded.
func (u *callerUtterance) addFrame(pcm []int16, loud bool, now time.Time) {
	u.pcm = append(u.pcm, pcm...)
	u.heard = now
	if !loud {
		u.silent += frameDuration
		return
	}
	u.loud++
	u.last, u.silent = now, 0
	if u.requestedAt >= 0 && u.loud-u.requestedAt >= 4 {
		u.invalidate()
	}
}

// maxLateness is how late frames may come, from a network or on a busy machine, before their absence counts as silence.
const maxLateness = 300 * time.Millisecond

// quiet returns how long the caller has been silent. It is the length of the silent audio: late frames are no silence.
func (u *callerUtterance) quiet(now time.Time) time.Duration {
	return u.silent + max(now.Sub(u.heard)-maxLateness, 0)
}

func (u *callerUtterance) invalidate() {
	if u.cancel != nil {
		u.cancel()
		u.cancel = nil
	}
	if u.speculative != nil {
		u.speculative.discard()
		u.speculative = nil
	}
	u.requestedAt, u.transcribed, u.text, u.err, u.ownWords = -1, false, "", nil, false
}

// dropUtterance discards the current utterance.
func (t *conversation) dropUtterance() {
	if t.utterance != nil {
		t.utterance.invalidate()
		t.utterance = nil
		t.activity.reset()
	}
}

// checkUtterance transcribes the utterance after a pause, and ends it once the pause is long enough for its words.
func (t *conversation) checkUtterance(now time.Time) {
	u := t.utterance
	quiet := u.quiet(now)
	spoke := time.Duration(len(u.pcm)) * time.Second / 8000
	if spoke > maxUtterance {
		quiet = max(quiet, maxPause)
	}
	switch {
	case u.requestedAt < 0 && (quiet >= speculateAfter || u.bargeIn && !u.checked && spoke >= preRoll+bargeInCheckAfter):
		u.checked = true
		t.transcribe(u)
	case u.transcribed && u.bargeIn && u.text == "" && u.err == nil:
		t.endUtterance(u) // noise or echo: the agent continues
	case u.transcribed && quiet >= endPause(u.text) && !t.toolsRunning:
		t.endUtterance(u)
	}
}

// transcribe starts the transcription of the utterance so far.
func (t *conversation) transcribe(u *callerUtterance) {
	u.requestedAt = u.loud
	asked := u.loud
	ctx, cancel := context.WithTimeout(t.ctx, t.s.stall)
	u.cancel = cancel
	pcm, phrases := append([]int16(nil), u.pcm...), t.model.Phrases()
	t.work.Go(func() {
		defer cancel()
		text, err := t.s.cfg.Transcriber.Transcribe(ctx, pcm, phrases, t.settings.Language)
		t.post(func() {
			if t.utterance == u && u.requestedAt == asked && !u.transcribed {
				t.transcribed(u, text, err)
			}
		})
	})
}

// transcribed stores the transcription, and starts a speculative reply before the end of the turn is certain.
func (t *conversation) transcribed(u *callerUtterance, text string, err error) {
	if u.ownWords = text != "" && err == nil && t.isOwnWords(u, text); u.ownWords {
		text, t.echoes = "", true
	}
	u.transcribed, u.text, u.err, u.transcribedAt = true, text, err, t.s.cfg.Clock.Now()
	if text == "" || err != nil || t.toolsRunning || u.bargeIn && isBackchannel(text) {
		return
	}
	u.speculative = t.startReply(append(t.context(), Message{Role: "user", Text: text}))
}

// context returns the history, with the text of the current speech that was played so far.
func (t *conversation) context() []Message {
	told := t.history[:len(t.history):len(t.history)]
	if t.speech != nil {
		if text, _ := t.speech.playedText(); text != "" {
			told = append(told, Message{Role: "assistant", Text: text})
		}
	}
	return told
}

var errNotRecognised = errors.New("what callers say is not understood")

// endUtterance ends the caller's utterance.
func (t *conversation) endUtterance(u *callerUtterance) {
	t.utterance, t.idleSince = nil, t.s.cfg.Clock.Now()
	t.activity.reset()
	switch err := u.err; {
	case err != nil:
		u.invalidate()
		t.recognitionFailed(err)
	case u.text == "" || u.bargeIn && t.hasMoreToSay() && isBackchannel(u.text):
		t.resumeOrAsk(u)
	default:
		t.answer(u)
	}
}

// hasMoreToSay reports whether the agent has more to say.
func (t *conversation) hasMoreToSay() bool {
	return t.nextReply != nil || t.speech != nil && !t.speech.isOver()
}

// resumeOrAsk resumes the agent's speech after noise or a backchannel. If the agent has nothing to say it asks the
// caller to repeat.
func (t *conversation) resumeOrAsk(u *callerUtterance) {
	if t.hasMoreToSay() {
		if t.speech != nil {
			t.speech.resume()
		}
		t.caller.AddEntry("ai_agent.resumed", map[string]any{"ms": 20 * u.loud})
		return
	}
	if u.ownWords || u.loud < 30 { // 0.6 s
		return
	}
	if t.misheard++; t.misheard > maxMisheard {
		t.handOver("the caller was not understood", t.phrase(connecting))
		return
	}
	t.say(nil, 0, t.phrase(repeatPlease))
}

// recognitionFailed asks the caller to repeat after the first error of the transcriber, and ends the conversation
// after the second.
func (t *conversation) recognitionFailed(err error) {
	if t.misheard++; t.misheard > 1 {
		t.fail(errors.Join(errNotRecognised, err))
		return
	}
	t.say(nil, 0, t.phrase(repeatPlease))
}

// answer plays the answer to an utterance.
func (t *conversation) answer(u *callerUtterance) {
	now := t.s.cfg.Clock.Now()
	t.countCutOff(u)
	t.endAgentTurn()
	t.saveTurn()
	t.silencePrompts = 0
	t.history = append(t.history, Message{Role: "user", Text: u.text})
	t.log.add(false, u.text, u.began, u.last)
	t.turn = &Turn{At: u.last, Heard: u.text, Engine: t.model.Engine(), last: u.last}
	t.turn.Endpoint, t.turn.Transcribed = t.turn.msSince(now), t.turn.msSince(u.transcribedAt)
	if t.cutOffs == maxCutOffs {
		u.invalidate()
		t.handOver("three answers in a row were cut off", t.phrase(connecting))
		return
	}
	r := u.speculative
	if r == nil {
		r = t.startReply(t.history)
	}
	t.startAnswer(r)
}

// countCutOff counts the consecutive answers of the agent that the caller interrupts. Words before an answer is heard belong to what the
// caller said before it, and change nothing.
func (t *conversation) countCutOff(u *callerUtterance) {
	switch {
	case t.reply == nil: // an announcement, or silence
		t.cutOffs = 0
	case u.bargeIn && t.hasMoreToSay():
		t.cutOffs++
	case t.speech != nil && !t.speech.isHeard():
	default:
		t.cutOffs = 0
	}
}

// startAnswer plays a reply as the answer of a new turn.
func (t *conversation) startAnswer(r *pendingReply) {
	if t.turns++; t.turns > maxTurns {
		r.discard()
		t.handOver("too many turns", t.phrase(connecting))
		return
	}
	t.rounds = 0
	t.playReply(r)
}

// playReply plays a reply.
func (t *conversation) playReply(r *pendingReply) {
	t.reply, t.speech = r, r.speech
	r.speech.release()
	if r.done {
		t.replyDone(r)
	}
}
