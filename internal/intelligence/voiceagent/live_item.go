package voiceagent

import (
	"strings"
	"time"

	"soniq/internal/protocol/media"
)

// outputItem is an utterance of the engine: audio that is played while it arrives, and its text.
type item struct {
	id      string
	feed    *media.Feed
	playing Playing // nil until earlier items were played
	text    string
	began   time.Time     // start of playing
	sound   time.Duration // audio that arrived
	ended   bool          // all audio has arrived
	last    bool          // nothing of it is played any more
}

// maxItems limits the items that wait to be played.
const mostItems = 20

// itemOf returns the output item of an event, and creates it if necessary. It returns nil for an item that is no
// longer played.
func (l *live) itemOf(id string, rate int) *item {
	if l.cut[id] || l.ending != nil && !l.ends(id) {
		return nil
	}
	for _, x := range l.items {
		if x.id == id {
			if x.feed == nil && rate > 0 {
				x.feed = media.NewFeed(rate)
			}
			return x
		}
	}
	if len(l.items) == mostItems {
		return nil
	}
	x := &item{id: id}
	if rate > 0 {
		x.feed = media.NewFeed(rate)
	}
	l.items = append(l.items, x)
	return x
}

// isKnownItem reports whether an item exists: items begun before the end of the conversation are still played.
func (l *live) ends(id string) bool {
	for _, x := range l.items {
		if x.id == id {
			return true
		}
	}
	return false
}

// outputAudio adds audio of the engine.
func (l *live) sound(sign Sign) {
	if len(sign.PCM) == 0 {
		return
	}
	x := l.itemOf(sign.Item, sign.Rate)
	if x == nil {
		return
	}
	now := l.s.Now()
	l.waits = time.Time{}
	x.sound += time.Duration(len(sign.PCM)) * time.Second / time.Duration(sign.Rate)
	x.feed.Write(sign.PCM)
	if l.turn != nil && l.turn.Voiced == nil {
		l.turn.Voiced = l.turn.since(now)
		l.turn.Thought = l.turn.Voiced
	}
	l.play(now)
}

// outputText adds text of the engine's audio.
func (l *live) said(sign Sign) {
	if x := l.itemOf(sign.Item, 0); x != nil && len(x.text) < mostArgument {
		x.text += sign.Text
	}
}

// maxItemText limits the text of an item, in bytes.
const mostArgument = 16 << 10

// playNext starts playing the first waiting item.
func (l *live) play(now time.Time) {
	if len(l.items) == 0 || l.own != nil {
		return
	}
	x := l.items[0]
	if x.playing != nil || x.feed == nil {
		return
	}
	p, err := l.line.Pour(l.ctx, x.feed)
	if err != nil {
		return // the caller has hung up
	}
	x.playing, x.began = p, now
	if l.turn != nil && l.turn.Audio == nil {
		l.turn.Audio = l.turn.since(now)
	}
}

// outputComplete marks all audio of a response as arrived.
func (l *live) complete() {
	for _, x := range l.items {
		x.ended = true
		if x.feed != nil {
			x.feed.End()
		}
	}
}

// checkPlayed finishes items that were played to their end.
func (l *live) played(now time.Time) {
	for len(l.items) > 0 {
		x := l.items[0]
		if x.feed == nil && x.ended { // text without audio
			l.settle(x, true)
			continue
		}
		if x.playing == nil {
			l.play(now)
			return
		}
		select {
		case <-x.playing.Done():
			l.settle(x, true)
			l.idle = now
		default:
			return
		}
	}
}

// finishItem removes an item from the queue and records the text that was played.
func (l *live) settle(x *item, whole bool) {
	text := x.heard(whole)
	l.items = l.items[1:]
	l.cut[x.id] = true
	l.told("assistant", text)
	if x.playing != nil {
		l.diary.say(true, text, x.began, x.began.Add(x.playing.Heard()))
	}
	if l.turn == nil {
		return
	}
	l.turn.Said = strings.TrimSpace(l.turn.Said + " " + text)
	l.turn.Interrupted = l.turn.Interrupted || !whole
}

// playedText returns the text that was played, in proportion to the time.
func (x *item) heard(whole bool) string {
	text := strings.TrimSpace(x.text)
	if whole {
		return text
	}
	if x.playing == nil || x.sound == 0 {
		return ""
	}
	all := strings.Fields(text)
	n := int(float64(len(all)) * float64(x.playing.Heard()) / float64(x.sound))
	return strings.TrimSpace(strings.Join(all[:min(n, len(all))], " ") + endsPart)
}

// interrupt stops the engine's audio, and reports to the engine how much was played.
func (l *live) interrupt() {
	for len(l.items) > 0 {
		x := l.items[0]
		if x.playing != nil {
			x.playing.Stop()
			if l.wire != nil {
				l.wire.Cut(x.id, min(x.playing.Heard(), x.sound), x.ended)
			}
		} else if l.wire != nil {
			l.wire.Cut(x.id, 0, x.ended)
		}
		l.settle(x, false)
	}
}

// silence stops the engine's audio at the end of the conversation or for an announcement.
func (l *live) hush() { l.interrupt() }
