package pbx

import (
	"context"
	"time"

	"soniq/internal/protocol/media"
	"soniq/internal/telephony/call"
)

// unavailableText is spoken if no emergency service can be reached.
const unavailableText = "Emergency calls are not available from this phone. Use a mobile phone."

const (
	unavailableSpeechTime = 2 * time.Second        // limit of speech synthesis, then tones are played instead
	unavailableMaxTime    = 8 * time.Second        // longest announcement
	earlyPause            = 200 * time.Millisecond // phones need a moment before they play early media
	unavailableTonesTime  = 3600 * time.Millisecond
)

// announceUnavailable plays a notice to an emergency caller without a route, then refuses the call. Few phones show
// the reason of a refusal. The notice is early media without an answer, so that the phone may still try another line
// after the refusal. A phone that cannot get early media is refused at once.
func (c *liveCall) announceUnavailable(r *Refusal) {
	refuse := func(context.Context) {
		c.reject(r.Status, r.Phrase, call.Outcome{Reason: r.Reason, HangupBy: "system", SIPStatus: r.Status})
	}
	if c.a.in.Offer == nil || c.openMedia() != nil {
		refuse(nil)
		return
	}
	sdp, err := c.localSDP(c.a)
	if err != nil {
		refuse(nil)
		return
	}
	c.a.apply()
	org := c.new.Org
	c.runAsync(unavailableSpeechTime, func(ctx context.Context) func(context.Context) {
		clip, err := c.sw.say(ctx, org, unavailableText, "")
		return func(context.Context) {
			if c.done {
				return
			}
			c.a.in.Ring(183, sdp)
			c.addEntry("emergency.unavailable", c.a, detail{"spoken": err == nil})
			c.afterWhileActive(earlyPause, func(context.Context) {
				if err != nil {
					c.a.stream.Play(media.SpecialInformation(), media.PlayOptions{Loop: true})
					c.afterWhileActive(unavailableTonesTime, refuse)
					return
				}
				c.a.stream.Play(clip, media.PlayOptions{})
				c.afterWhileActive(min(clip.Duration()+earlyPause, unavailableMaxTime), refuse)
			})
		}
	})
}
