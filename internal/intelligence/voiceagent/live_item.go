package voiceagent

import (
	"strings"
	"time"

	"soniq/internal/protocol/media"
)

// An item is something a Duplex says: sound that is heard while it comes, and its words.
type item struct {
	id      string
	feed    *media.Feed
	playing Playing // nil until those before it were heard
	text    string
	began   time.Time     // to be heard
	sound   time.Duration // that came
	ended   bool          // all of it came
	last    bool          // nothing of it is heard any more
}

// mostItems bounds what waits to be heard.
const mostItems = 20

// itemOf is what a sign is about; nil where nobody wants to hear it.
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

// ends reports whether an item is known already: what was begun before the end was decided is heard.
func (l *live) ends(id string) bool {
	for _, x := range l.items {
		if x.id == id {
			return true
		}
	}
	return false
}

// sound takes what the Duplex says.
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

// said takes its words.
func (l *live) said(sign Sign) {
	if x := l.itemOf(sign.Item, 0); x != nil && len(x.text) < mostArgument {
		x.text += sign.Text
	}
}

// mostArgument bounds the words of an item, in bytes.
const mostArgument = 16 << 10

// play lets the caller hear the first of what waits.
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
		return // the caller is gone
	}
	x.playing, x.began = p, now
	if l.turn != nil && l.turn.Audio == nil {
		l.turn.Audio = l.turn.since(now)
	}
}

// complete says that all of an answer came.
func (l *live) complete() {
	for _, x := range l.items {
		x.ended = true
		if x.feed != nil {
			x.feed.End()
		}
	}
}

// played takes note of what was heard to its end.
func (l *live) played(now time.Time) {
	for len(l.items) > 0 {
		x := l.items[0]
		if x.feed == nil && x.ended { // words without sound
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

// settle takes an item out of what waits, with what was heard of it.
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

// heard are the words that were heard, by the time it was.
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

// interrupt silences the Duplex, and tells it what was heard of what it said.
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

// hush silences it where nobody goes on after that.
func (l *live) hush() { l.interrupt() }
