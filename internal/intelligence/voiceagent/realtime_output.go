package voiceagent

import (
	"strings"
	"time"

	"soniq/internal/protocol/media"
)

// outputItem is an utterance of the engine: audio that is played while it arrives, and its text.
type outputItem struct {
	id       string
	feed     *media.InjectedAudio
	playing  Playback // nil until earlier items were played
	text     string
	began    time.Time     // start of playing
	sound    time.Duration // audio that arrived
	arrived  time.Time     // when the last of it arrived
	complete bool          // all audio has arrived
	pcm      []int16       // audio that arrived, at 8 kHz
	rest     []int16       // the last samples of it that are not in pcm
}

// maxItems limits the items that wait to be played.
const maxItems = 20

// itemOf returns the output item of an event, and creates it if necessary. It returns nil for an item that is no
// longer played.
func (l *realtimeConversation) itemOf(id string, rate int) *outputItem {
	if l.finishedItems[id] || l.ending != nil && !l.isKnownItem(id) {
		return nil
	}
	for _, x := range l.items {
		if x.id == id {
			if x.feed == nil && rate > 0 {
				x.feed = media.NewInjectedAudio(rate)
			}
			return x
		}
	}
	if len(l.items) == maxItems {
		return nil
	}
	x := &outputItem{id: id, arrived: l.s.cfg.Clock.Now()}
	if rate > 0 {
		x.feed = media.NewInjectedAudio(rate)
	}
	l.items = append(l.items, x)
	return x
}

// isKnownItem reports whether an item exists: items begun before the end of the conversation are still played.
func (l *realtimeConversation) isKnownItem(id string) bool {
	for _, x := range l.items {
		if x.id == id {
			return true
		}
	}
	return false
}

// outputAudio adds audio of the engine.
func (l *realtimeConversation) outputAudio(sign RealtimeEvent) {
	if len(sign.PCM) == 0 {
		return
	}
	x := l.itemOf(sign.Item, sign.Rate)
	if x == nil {
		return
	}
	now := l.s.cfg.Clock.Now()
	l.waitingSince = time.Time{}
	x.arrived = now
	x.sound += time.Duration(len(sign.PCM)) * time.Second / time.Duration(sign.Rate)
	x.feed.Write(sign.PCM)
	x.addAudio(sign.PCM, sign.Rate)
	if l.turn != nil && l.turn.FirstClip == nil {
		l.turn.FirstClip = l.turn.msSince(now)
		l.turn.FirstWords = l.turn.FirstClip
	}
	l.playNext(now)
}

// outputText adds text of the engine's audio.
func (l *realtimeConversation) outputText(sign RealtimeEvent) {
	if x := l.itemOf(sign.Item, 0); x != nil && len(x.text) < maxItemText {
		x.text += sign.Text
	}
}

// maxItemText limits the text of an item, in bytes.
const maxItemText = 16 << 10

// playNext starts playing the first waiting item.
func (l *realtimeConversation) playNext(now time.Time) {
	if len(l.items) == 0 || l.ownSpeech != nil {
		return
	}
	x := l.items[0]
	if x.playing != nil || x.feed == nil {
		return
	}
	p, err := l.caller.PlayStream(l.ctx, x.feed)
	if err != nil {
		return // the caller has hung up
	}
	x.playing, x.began = p, now
	if l.turn != nil && l.turn.FirstAudio == nil {
		l.turn.FirstAudio = l.turn.msSince(now)
	}
}

// outputComplete marks all audio of a response as arrived.
func (l *realtimeConversation) outputComplete() {
	for _, x := range l.items {
		x.complete = true
		if x.feed != nil {
			x.feed.End()
		}
	}
}

// checkPlayed finishes items that were played to their end.
func (l *realtimeConversation) checkPlayed(now time.Time) {
	for len(l.items) > 0 {
		x := l.items[0]
		if x.feed == nil && x.complete { // text without audio
			l.finishItem(x, true)
			continue
		}
		if x.playing == nil {
			l.playNext(now)
			return
		}
		select {
		case <-x.playing.Done():
			l.finishItem(x, true)
			l.idleSince = now
		default:
			return
		}
	}
}

// finishItem removes an item from the queue and records the text that was played.
func (l *realtimeConversation) finishItem(x *outputItem, whole bool) {
	text := x.playedText(whole)
	l.items = l.items[1:]
	l.finishedItems[x.id] = true
	l.addHistory("assistant", text)
	if x.playing != nil {
		l.log.add(true, text, x.began, x.began.Add(x.playing.Played()))
	}
	if l.turn == nil {
		return
	}
	l.turn.Said = strings.TrimSpace(l.turn.Said + " " + text)
	l.turn.Interrupted = l.turn.Interrupted || !whole
}

// playedText returns the text that was played, in proportion to the time.
func (x *outputItem) playedText(whole bool) string {
	text := strings.TrimSpace(x.text)
	if whole {
		return text
	}
	if x.playing == nil || x.sound == 0 {
		return ""
	}
	all := strings.Fields(text)
	n := int(float64(len(all)) * float64(x.playing.Played()) / float64(x.sound))
	return strings.TrimSpace(strings.Join(all[:min(n, len(all))], " ") + cutOffMark)
}

// silentSince returns since when nothing is left of an item to play; zero if it is complete.
func (x *outputItem) silentSince() time.Time {
	switch {
	case x.complete:
		return time.Time{}
	case x.playing == nil:
		return x.arrived
	}
	return later(x.arrived, x.began.Add(x.sound))
}

// interrupt stops the engine's audio, and reports to the engine how much was played.
func (l *realtimeConversation) interrupt() {
	for len(l.items) > 0 {
		x := l.items[0]
		if x.playing != nil {
			x.playing.Stop()
			if l.session != nil {
				l.session.Truncate(x.id, min(x.playing.Played(), x.sound), x.complete)
			}
		} else if l.session != nil {
			l.session.Truncate(x.id, 0, x.complete)
		}
		l.finishItem(x, false)
	}
}

// silence stops the engine's audio at the end of the conversation or for an announcement.
func (l *realtimeConversation) silence() { l.interrupt() }
