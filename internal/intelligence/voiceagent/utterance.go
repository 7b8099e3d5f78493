package voiceagent

import (
	"context"
	"errors"
	"time"
)

// callerUtterance is the current utterance of the caller, from the detection of speech on.
type utterance struct {
	pcm    []int16
	began  time.Time
	loud   int       // loud frames
	last   time.Time // last loud frame
	asked  int       // loud frames when the transcription was requested; -1: not requested since
	known  bool      // the transcription is complete
	text   string
	heard  time.Time // time of the transcription
	err    error
	cancel context.CancelFunc
	ahead  *reply // speculative reply
	barged bool   // it interrupts the agent (barge-in)
	check  bool   // it was transcribed once while it went on, to check for words
}

// frameSamples is 20 ms at 8 kHz.
const frameSamples = 160

// handleAudio processes audio of the caller.
func (t *talk) audio(piece []int16) {
	t.rest = append(t.rest, piece...)
	n := 0
	for ; n+frameSamples <= len(t.rest); n += frameSamples {
		t.frame(t.rest[n : n+frameSamples])
	}
	t.rest = append(t.rest[:0], t.rest[n:]...)
}

func (t *talk) frame(pcm []int16) {
	loud := t.act.frame(pcm)
	if u := t.utter; u != nil {
		u.take(pcm, loud, t.s.Now())
		return
	}
	t.recent = append(t.recent, pcm...)
	if most := samples(preRoll); len(t.recent) > most {
		t.recent = append(t.recent[:0], t.recent[len(t.recent)-most:]...)
	}
	if loud && t.listens() && t.act.loud() >= t.enough() {
		t.begins()
	}
}

func samples(d time.Duration) int { return int(d * 8 / time.Millisecond) }

// isListening reports whether a caller who speaks now is listened to.
func (t *talk) listens() bool {
	return t.ending == nil && (t.speech == nil || t.speech.isOver() || t.speech.interruptible())
}

// speechThreshold returns how many loud frames count as speech now.
func (t *talk) enough() int {
	if t.speech == nil {
		return beginsWith
	}
	switch audible, soon := t.speech.audible(); {
	case audible && soon:
		return bargesSoon
	case audible:
		return barges
	}
	return beginsWith
}

// startUtterance starts an utterance of the caller. The agent pauses until the transcription shows whether there are
// words.
func (t *talk) begins() {
	now := t.s.Now()
	u := &utterance{pcm: append([]int16(nil), t.recent...), began: now.Add(-window * beat), loud: t.act.loud(), last: now, asked: -1}
	t.recent = t.recent[:0]
	t.utter, t.idle = u, time.Time{}
	if t.speech != nil && !t.speech.isOver() {
		u.barged, _ = t.speech.audible()
		t.speech.pause()
	}
}

// addFrame adds 20 ms. If the caller goes on speaking, the transcription and the speculative reply are discarded.
func (u *utterance) take(pcm []int16, loud bool, now time.Time) {
	u.pcm = append(u.pcm, pcm...)
	if !loud {
		return
	}
	u.loud++
	u.last = now
	if u.asked >= 0 && u.loud-u.asked >= 4 {
		u.void()
	}
}

func (u *utterance) void() {
	if u.cancel != nil {
		u.cancel()
		u.cancel = nil
	}
	if u.ahead != nil {
		u.ahead.drop()
		u.ahead = nil
	}
	u.asked, u.known, u.text, u.err = -1, false, "", nil
}

// dropUtterance discards the current utterance.
func (t *talk) forgetUtterance() {
	if t.utter != nil {
		t.utter.void()
		t.utter = nil
		t.act.forget()
	}
}

// checkUtterance transcribes the utterance after a pause, and ends it once the pause is long enough for its words.
func (t *talk) attend(now time.Time) {
	u := t.utter
	quiet := now.Sub(u.last)
	spoke := time.Duration(len(u.pcm)) * time.Second / 8000
	if spoke > mostSpeech {
		quiet = max(quiet, longestWait)
	}
	switch {
	case u.asked < 0 && (quiet >= thinksAhead || u.barged && !u.check && spoke >= preRoll+checksAt):
		u.check = true
		t.hear(u)
	case u.known && u.barged && u.text == "" && u.err == nil:
		t.endOf(u) // noise: the agent continues
	case u.known && quiet >= pause(u.text) && !t.acting:
		t.endOf(u)
	}
}

// transcribe starts the transcription of the utterance so far.
func (t *talk) hear(u *utterance) {
	u.asked = u.loud
	asked := u.loud
	ctx, cancel := context.WithTimeout(t.ctx, hearLimit)
	u.cancel = cancel
	pcm, phrases := append([]int16(nil), u.pcm...), t.mind.Phrases()
	t.work.Go(func() {
		defer cancel()
		text, err := t.s.Ear.Hear(ctx, pcm, phrases, t.set.Language)
		t.post(func() {
			if t.utter == u && u.asked == asked && !u.known {
				t.understood(u, text, err)
			}
		})
	})
}

// transcribed stores the transcription, and starts a speculative reply before the end of the turn is certain.
func (t *talk) understood(u *utterance, text string, err error) {
	u.known, u.text, u.err, u.heard = true, text, err, t.s.Now()
	if text == "" || err != nil || t.acting || u.barged && murmur(text) {
		return
	}
	u.ahead = t.think(append(t.context(), Message{Role: "user", Text: text}))
}

// context returns the history, with the text of the current speech that was played so far.
func (t *talk) context() []Message {
	told := t.told[:len(t.told):len(t.told)]
	if t.speech != nil {
		if text, _ := t.speech.heard(); text != "" {
			told = append(told, Message{Role: "assistant", Text: text})
		}
	}
	return told
}

var errMuffled = errors.New("what callers say is not understood")

// endUtterance ends the caller's utterance.
func (t *talk) endOf(u *utterance) {
	t.utter, t.idle = nil, t.s.Now()
	t.act.forget()
	switch {
	case u.err != nil:
		u.void()
		t.muffled(u.err)
	case u.text == "" || u.barged && t.goesOn() && murmur(u.text):
		t.noWords(u)
	default:
		t.answer(u)
	}
}

// hasMoreToSay reports whether the agent has more to say.
func (t *talk) goesOn() bool { return t.next != nil || t.speech != nil && !t.speech.isOver() }

// resumeOrAsk resumes the agent's speech after noise or a backchannel. If the agent has nothing to say it asks the
// caller to repeat.
func (t *talk) noWords(u *utterance) {
	if t.goesOn() {
		if t.speech != nil {
			t.speech.resume()
		}
		t.line.Step("ai_agent.resumed", map[string]any{"ms": 20 * u.loud})
		return
	}
	if u.loud < 30 { // 0.6 s
		return
	}
	if t.misheard++; t.misheard > mishears {
		t.handOver("the caller was not understood", t.phrase(handing))
		return
	}
	t.say(nil, 0, t.phrase(again))
}

// recognitionFailed asks the caller to repeat after the first error of the transcriber, and ends the conversation
// after the second.
func (t *talk) muffled(err error) {
	if t.misheard++; t.misheard > 1 {
		t.broken(errors.Join(errMuffled, err))
		return
	}
	t.say(nil, 0, t.phrase(again))
}

// answer plays the answer to an utterance.
func (t *talk) answer(u *utterance) {
	now := t.s.Now()
	t.settle()
	t.store()
	t.asked = 0
	t.told = append(t.told, Message{Role: "user", Text: u.text})
	t.diary.say(false, u.text, u.began, u.last)
	t.turn = &Turn{At: u.last, Heard: u.text, Engine: t.mind.Engine(), last: u.last}
	t.turn.Endpoint, t.turn.Understood = t.turn.since(now), t.turn.since(u.heard)
	r := u.ahead
	if r == nil {
		r = t.think(t.told)
	}
	t.released(r)
}

// startAnswer plays a reply as the answer of a new turn.
func (t *talk) released(r *reply) {
	if t.turns++; t.turns > mostTurns {
		r.drop()
		t.handOver("too many turns", t.phrase(handing))
		return
	}
	t.rounds = 0
	t.goOn(r)
}

// playReply plays a reply.
func (t *talk) goOn(r *reply) {
	t.reply, t.speech = r, r.speech
	r.speech.release()
	if r.done {
		t.thought(r)
	}
}
