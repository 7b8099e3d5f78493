package acd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"soniq/internal/contactcenter/queue"
	"soniq/internal/contactcenter/routing"
	"soniq/internal/platform/db"
	"soniq/internal/protocol/media/clip"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx"
)

// Announcements to waiting callers, and the keys they can press.

// announcer plays announcements to a caller from time to time.
type announcer struct {
	timer    *time.Timer // nil: no announcement is scheduled
	finished chan struct{}
	cancel   context.CancelFunc // cancels the current announcement; nil: none is playing
	key      string             // the callback key that the last announcement named; "" if it named none
	playing  sync.WaitGroup
}

// due returns the channel that fires when the next announcement is due. It is nil while one is playing, and if none
// is scheduled.
func (x *announcer) due() <-chan time.Time {
	if x.timer == nil || x.cancel != nil {
		return nil
	}
	return x.timer.C
}

// stop ends the current announcement and cancels the next one.
func (x *announcer) stop() {
	if x.timer != nil {
		x.timer.Stop()
		x.timer = nil
	}
	if x.cancel != nil {
		x.cancel()
	}
	x.playing.Wait()
	x.cancel = nil
}

// play runs speak in a goroutine and closes finished afterwards.
func (x *announcer) play(ctx context.Context, speak func(ctx context.Context)) {
	ctx, x.cancel = context.WithCancel(ctx)
	said := make(chan struct{})
	x.finished = said
	x.playing.Go(func() {
		defer close(said)
		speak(ctx)
	})
}

// The first announcement comes after a short delay, so that the caller notices the music first. While agents ring it
// is postponed.
const (
	firstAnnouncementDelay = 1500 * time.Millisecond
	announcementRetry      = 5 * time.Second
)

// hasAnnouncements reports whether the queue makes any announcement.
func (t *queueSession) hasAnnouncements() bool {
	a := t.queue.Announce
	return a.Position || a.EstimatedWait || a.AudioID != nil || t.offersCallback()
}

func (t *queueSession) offersCallback() bool {
	return t.queue.Callback.Enabled && routing.CallbackNumber(t.info) != ""
}

// scheduleFirst sets the time of the first announcement.
func (t *queueSession) scheduleFirst() {
	if t.announcer.cancel != nil { // announcementDone schedules the next one
		return
	}
	t.announcer.stop()
	if !t.hasAnnouncements() {
		return
	}
	first := firstAnnouncementDelay
	if a := t.queue.Announce; !a.Position && !a.EstimatedWait && a.AudioID == nil {
		first = max(first, time.Until(t.callbackOfferedAt()))
	}
	t.announcer.timer = time.NewTimer(first)
}

// callbackOfferedAt returns the time from which the caller can request a callback.
func (t *queueSession) callbackOfferedAt() time.Time {
	return t.entry.EnteredAt.Add(seconds(t.queue.Callback.OfferAfterSeconds))
}

// announce plays the position, the estimated wait and the callback offer.
func (t *queueSession) announce(ctx context.Context) (string, bool) {
	if len(t.attempts) > 0 || t.waiter.currentEntry() == "" {
		t.announcer.timer.Reset(announcementRetry)
		return "", false
	}
	k, e := t.queue, t.entry
	back := t.offersCallback() && !time.Now().Before(t.callbackOfferedAt())
	if t.announcer.key = ""; back {
		t.announcer.key = k.Callback.Key
	}
	t.announcer.play(ctx, func(ctx context.Context) {
		for _, clip := range t.announcementClips(ctx, k, e, back) {
			if t.v.Play(ctx, clip, pbx.PlayOptions{Keys: back}) != nil {
				return
			}
		}
	})
	return "", false
}

// announcementDone schedules the next announcement.
func (t *queueSession) announcementDone(context.Context) (string, bool) {
	t.announcer.cancel()
	t.announcer.cancel, t.announcer.finished = nil, nil
	if t.announcer.timer == nil || !t.hasAnnouncements() {
		t.scheduleFirst()
		return "", false
	}
	next := seconds(t.queue.Announce.EverySeconds)
	if from := time.Until(t.callbackOfferedAt()); t.offersCallback() && from > 0 {
		next = min(next, from)
	}
	t.announcer.timer.Reset(next)
	return "", false
}

// announcementClips returns the audio of an announcement. Text is left out if it cannot be spoken, as without text to
// speech.
func (t *queueSession) announcementClips(ctx context.Context, k queue.Queue, e queue.Entry, back bool) (all []*clip.Clip) {
	if id := k.Announce.AudioID; id != nil {
		if clip, err := t.v.Clip(ctx, *id); err == nil {
			all = append(all, clip)
		}
	}
	if spoken := t.announcementText(ctx, k, e, back); spoken != "" {
		if clip, err := t.v.Say(ctx, spoken, "", ""); err == nil {
			all = append(all, clip)
			t.v.AddEntry("announcement.played", map[string]any{"text": spoken})
		} else if ctx.Err() == nil {
			t.v.AddEntry("announcement.failed", map[string]any{"err": err.Error()})
		}
	}
	return all
}

// announcementText returns the position, the estimated wait, and the key for a callback.
func (t *queueSession) announcementText(ctx context.Context, k queue.Queue, e queue.Entry, back bool) string {
	var all []string
	if k.Announce.Position || k.Announce.EstimatedWait {
		now, err := t.s.cfg.Queues.EntryWithPosition(ctx, t.s.cfg.DB.Read(ctx), t.info.Org, e.ID)
		if err != nil {
			return ""
		}
		if k.Announce.Position && now.Position > 0 {
			all = append(all, positionPhrase(now.Position))
		}
		if k.Announce.EstimatedWait && now.EstimatedWait != nil {
			all = append(all, waitPhrase(*now.EstimatedWait))
		}
	}
	if back {
		all = append(all, fmt.Sprintf("To be called back without losing your place, press %s.", keyName(k.Callback.Key)))
	}
	return strings.Join(all, " ")
}

// positionPhrase returns a position as a sentence.
func positionPhrase(position int) string {
	if position == 1 {
		return "You are next in line."
	}
	return fmt.Sprintf("You are number %s in line.", inWords(position))
}

// waitPhrase returns an estimated wait as a sentence, in minutes.
func waitPhrase(seconds int) string {
	minutes := (seconds + 30) / 60
	switch {
	case minutes < 1:
		return "The estimated wait is less than one minute."
	case minutes == 1:
		return "The estimated wait is about one minute."
	case minutes > 60:
		return "The estimated wait is more than one hour."
	}
	return fmt.Sprintf("The estimated wait is about %s minutes.", inWords(minutes))
}

func keyName(key string) string {
	switch key {
	case "*":
		return "star"
	case "#":
		return "hash"
	}
	return inWords(int(key[0] - '0'))
}

// inWords returns a number in English words.
func inWords(n int) string {
	small := strings.Fields(`zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
		eighteen nineteen`)
	tens := strings.Fields("twenty thirty forty fifty sixty seventy eighty ninety")
	switch {
	case n < 0 || n > 999_999:
		return fmt.Sprint(n)
	case n < 20:
		return small[n]
	case n < 100:
		return strings.TrimSuffix(tens[n/10-2]+" "+small[n%10], " zero")
	case n < 1000:
		return strings.TrimSuffix(small[n/100]+" hundred "+inWords(n%100), " zero")
	}
	return strings.TrimSuffix(inWords(n/1000)+" thousand "+inWords(n%1000), " zero")
}

// handleKeys handles pressed keys. The callback key converts the wait to a callback: the caller keeps the position
// and may hang up.
func (t *queueSession) handleKeys(ctx context.Context) (string, bool) {
	for {
		d, pressed := t.v.TakeKey()
		if !pressed {
			return "", false
		}
		if t.isCallbackKey(string(d)) {
			return t.callBack(ctx)
		}
	}
}

// isCallbackKey reports whether a key requests a callback: the key of the settings from the time of the offer on, or
// the key that the last announcement named, even if the settings have changed since.
func (t *queueSession) isCallbackKey(key string) bool {
	if !t.offersCallback() {
		return false
	}
	return key == t.announcer.key || key == t.queue.Callback.Key && !time.Now().Before(t.callbackOfferedAt())
}

// callBack converts the queue entry to a callback and ends the call.
func (t *queueSession) callBack(ctx context.Context) (string, bool) {
	t.v.SetMissed(call.NotMissed)
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx),
		routing.WriteTimeout) // the caller may hang up as soon as the key is pressed
	defer cancel()
	err := t.s.cfg.DB.TxRelaxedContext(writing, func(ctx context.Context, tx db.Querier) error {
		return t.s.cfg.Queues.ConvertToCallback(ctx, tx, t.info.Org, t.entry.ID, queue.CallbackRequest{To: routing.CallbackNumber(t.info),
			From: routing.OwnNumber(t.info)})
	})
	if err != nil {
		t.v.SetMissed("abandoned_in_queue")
		if !errors.Is(err, queue.ErrGone) && ctx.Err() == nil {
			t.s.cfg.Log.Error("callback not stored", "call", t.info.CallID, "queue", t.queue.ID, "err", err)
		}
		return "", false
	}
	t.s.dispatcher.remove(t.info.Org, t.waiter)
	t.announcer.stop()
	t.cancelAll()
	t.v.AddEntry("callback.requested", map[string]any{"queue_id": t.queue.ID, "to": routing.CallbackNumber(t.info)})
	clip, err := t.v.Say(ctx, "Thank you. You keep your place in line, and we will call you back. Goodbye.", "", "")
	if err != nil {
		clip = routing.Beep()
	}
	if t.v.Loop(ctx, nil) == nil && t.v.Play(ctx, clip, pbx.PlayOptions{}) == nil {
		_ = t.v.HangUp(ctx, "canceled")
	}
	return routing.Callback, true
}
