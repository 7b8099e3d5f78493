package pbx

import (
	"context"
	"net/netip"
	"time"

	"soniq/internal/protocol/media"
	"soniq/internal/protocol/media/clip"
	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx/cause"
	"soniq/internal/telephony/trunk"
)

// Rules for emergency calls. The server plays no audio into them and never ends them. It admits them under overload and
// during shutdown. They take channels and ports of other calls, and do not wait for the database.

// protect makes the call one that no other call ends and that does not wait for its writes.
func (c *liveCall) protect() {
	c.protected.Store(true)
	c.writes.Background()
}

// beginInBackground makes the call durable in the journal. The call does not wait for its row.
func (c *liveCall) beginInBackground(ctx context.Context) {
	c.awaitTrying()
	c.began = true
	n := c.new
	settle, _ := c.sw.cfg.Journal.JournalBegin(n)
	c.writes.Write(ctx, "begin", func(ctx context.Context) error {
		err := c.sw.cfg.Store.Begin(ctx, n)
		if err == nil {
			c.inserted.Store(true)
			settle()
		}
		return err
	})
}

// Limits of the search for a stream that another call gives to an emergency call.
const (
	maxPreempted = 8                      // calls that one stream may cost, if others take what they leave
	preemptWait  = 300 * time.Millisecond // for a call to end; it may be waiting for the database
)

// openByPreemption ends other calls until the emergency call gets a stream.
func (c *liveCall) openByPreemption(claim media.Claim, beside *leg, via netip.Addr, err error) (*media.Stream, error) {
	tried := map[*liveCall]bool{c: true}
	for range maxPreempted {
		victim := c.sw.victim(c.new.Org, tried)
		if victim == nil {
			break
		}
		tried[victim] = true
		c.sw.cfg.Log.Warn("call ended because an emergency call needs its RTP ports", "call", victim.id, "org", victim.orgNow(), "for", c.id)
		victim.yield()
		var stream *media.Stream
		if stream, err = openWith(c.sw.cfg.Media.For(claim), beside, via); err == nil {
			return stream, nil
		}
	}
	return nil, err
}

// victim returns the call that makes room for an emergency call of an organisation: the newest of that organisation,
// otherwise the newest of the one with most calls. It returns nil if there is none.
func (s *Switch) victim(org string, tried map[*liveCall]bool) *liveCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	newest, count, largest := map[string]*liveCall{}, map[string]int{}, ""
	for _, c := range s.calls {
		o := c.orgNow()
		if o == "" || c.protected.Load() || tried[c] {
			continue
		}
		if count[o]++; count[o] > count[largest] {
			largest = o
		}
		if n := newest[o]; n == nil || c.started.After(n.started) {
			newest[o] = c
		}
	}
	if c := newest[org]; c != nil {
		return c
	}
	return newest[largest]
}

// yield ends the call for an emergency call and waits until its streams are closed. Another goroutine calls it.
func (c *liveCall) yield() {
	done := make(chan struct{})
	ended := func() { close(done) }
	if !c.inbox.Push(message{run: func(context.Context) { c.endPreempted(); ended() }, ifEnded: ended}) {
		return
	}
	timeout := time.NewTimer(preemptWait)
	defer timeout.Stop()
	select {
	case <-done:
	case <-timeout.C:
	}
}

// endPreempted ends the call because an emergency call needs what it has, or because outbound calls were stopped.
func (c *liveCall) endPreempted() {
	if c.done || c.protected.Load() {
		return
	}
	c.addEntry("call.preempted", nil, nil)
	c.hangUpAll(call.Outcome{Reason: "blocked", HangupBy: "system", Q850: cause.Preemption}, cause.Preemption)
}

// emergencyLeg returns the leg that rings or talks to an emergency service; nil if there is none.
func (c *liveCall) emergencyLeg() *leg {
	for _, l := range c.legs {
		if l.emergency && !l.over && l.owner.Load() == c {
			return l
		}
	}
	return nil
}

// isEmergency reports whether the call rings or talks to an emergency service.
func (c *liveCall) isEmergency() bool { return c.emergencyLeg() != nil }

// isEmergency reports whether the attempt dials an emergency service. It rings without a time limit then.
func (h *forkedDial) isEmergency() bool { return h.to.isEmergency() }

func (r resolvedDestination) isEmergency() bool { return r.outbound != nil && r.outbound.Emergency }

// wasEmergency reports whether a leg from before a restart dialled an emergency service.
func (c *liveCall) wasEmergency(l *leg) bool {
	return l.trunkID != "" && l.caller.UserID == "" && l.role != "caller" && trunk.IsEmergencyCall(c.policy.Country, l.number)
}

// maybeEmergency reports whether a call from a phone may be an emergency call. The country of its organisation
// decides later.
func maybeEmergency(in *sip.Inbound) bool {
	return in.TrunkID == "" && trunk.MaybeEmergency(dialled(in.RequestURI))
}

// isEmergencyRefusal reports whether the refused call was an emergency call.
func isEmergencyRefusal(r *Refusal) bool {
	return r != nil && r.Gate != nil && r.Gate.Reason == trunk.EmergencyUnavailable
}

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
		notice, err := c.sw.say(ctx, org, unavailableText, "")
		return func(context.Context) {
			if c.done {
				return
			}
			c.a.in.Ring(183, sdp)
			c.addEntry("emergency.unavailable", c.a, detail{"spoken": err == nil})
			c.afterWhileActive(earlyPause, func(context.Context) {
				if err != nil {
					c.a.stream.Play(clip.SpecialInformation(), media.PlayOptions{Loop: true})
					c.afterWhileActive(unavailableTonesTime, refuse)
					return
				}
				c.a.stream.Play(notice, media.PlayOptions{})
				c.afterWhileActive(min(notice.Duration()+earlyPause, unavailableMaxTime), refuse)
			})
		}
	})
}
