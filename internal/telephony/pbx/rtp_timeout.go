package pbx

import (
	"context"
	"errors"
	"time"

	"soniq/internal/protocol/media"
	"soniq/internal/protocol/sip"
)

// watch starts the detection of digits and of missing RTP. A phone that lost its network sends no BYE. A leg without
// RTP may still exist (one-way audio, silence suppression), so a re-INVITE checks its dialog. A leg that does not
// answer ends.
func (c *liveCall) watch(l *leg) {
	c.subscribeDTMF(l)
	l.stream.OnSilence(c.sw.MediaTimeout, func() {
		c := l.owner.Load()
		c.inbox.push(message{run: func(ctx context.Context) { c.onRTPTimeout(l) }})
	})
}

func (c *liveCall) onRTPTimeout(l *leg) {
	if !l.up() || l.offerPending || c.done || l.owner.Load() != c || c.isEmergency() { // an emergency caller may have to stay silent
		return
	}
	c.addEntry("media.silent", l, detail{"seconds": int(c.sw.MediaTimeout / time.Second)})
	l.rtpProbing = true
	c.offerMedia(l, l.session.LocalMedia(), func(_ context.Context, _ media.Description, err error) {
		c.rtpProbed(l, err)
	})
}

// rtpProbed handles the result of the re-INVITE. After a local timeout the SIP transaction still runs, and the SIP
// server reports its failure.
func (c *liveCall) rtpProbed(l *leg, err error) {
	var refused *sip.StatusError
	switch {
	case err == nil:
		l.apply()
		c.addEntry("media.silent_peer_alive", l, nil)
	case errors.Is(err, context.DeadlineExceeded):
		return
	case errors.As(err, &refused) && refused.Unsent:
		l.sip.DeclareLost("it sends nothing and cannot be reached")
		return
	}
	l.rtpProbing = false
}
