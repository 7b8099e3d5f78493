package pbx

import (
	"context"
	"time"

	"soniq/internal/protocol/media"
	"soniq/internal/telephony/call"
)

// unavailableText is said where no emergency service can be reached.
const unavailableText = "Emergency calls are not available from this phone. Use a mobile phone."

const (
	unavailableMade = 2 * time.Second        // so long the words may take to be made, before tones are played in their place
	unavailableMost = 8 * time.Second        // so long is the caller kept at the most
	earlyPause      = 200 * time.Millisecond // a phone needs a moment before it plays what comes before an answer
	tonesLast       = 3600 * time.Millisecond
)

// tellUnavailable says to who calls for help in vain that they have to take another phone, before the call is refused: few phones show why it
// is. It is said without an answer, so that the refusal still has a phone try another line. A phone that cannot be told so is refused at once.
func (c *liveCall) tellUnavailable(r *Refusal) {
	refuse := func(context.Context) {
		c.reject(r.Status, r.Phrase, call.Outcome{Reason: r.Reason, HangupBy: "system", SIPStatus: r.Status})
	}
	if c.a.in.Offer == nil || c.openMedia() != nil {
		refuse(nil)
		return
	}
	sdp, err := c.ownBody(c.a)
	if err != nil {
		refuse(nil)
		return
	}
	c.a.apply()
	org := c.new.Org
	c.aside(unavailableMade, func(ctx context.Context) func(context.Context) {
		clip, err := c.sw.say(ctx, org, unavailableText, "")
		return func(context.Context) {
			if c.done {
				return
			}
			c.a.in.Ring(183, sdp)
			c.step("emergency.unavailable", c.a, detail{"spoken": err == nil})
			c.limit(earlyPause, func(context.Context) {
				if err != nil {
					c.a.stream.Play(media.SpecialInformation(), media.PlayOptions{Loop: true})
					c.limit(tonesLast, refuse)
					return
				}
				c.a.stream.Play(clip, media.PlayOptions{})
				c.limit(min(clip.Duration()+earlyPause, unavailableMost), refuse)
			})
		}
	})
}
