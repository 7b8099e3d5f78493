package pbx

import (
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"sort"
	"strings"
	"time"

	"soniq/internal/protocol/media"
	"soniq/internal/protocol/media/clip"
	"soniq/internal/protocol/media/sdp"
	"soniq/internal/protocol/sip"
)

// callMedia is the connection of the audio of a call.
type callMedia struct {
	mixer         *media.Mixer
	wiredTopology uint64 // hash of the topology last given to the media
}

// wireMedia configures the media to match the state of the call: which leg hears which. It may be called at any time;
// it changes only differences.
func (c *liveCall) wireMedia() {
	for _, l := range c.parties() {
		l.setLoop(c.loopClipFor(l))
	}
	c.holdRecording(c.isHeldByPhone())
	talk := c.talking()
	hears := c.hearing(talk)
	for _, l := range c.parties() {
		l.setComfortNoise(hearsNothing(hears[l]))
	}
	if key := maphash.String(stateSeed, topologyKey(hears)); key != c.wiredTopology {
		c.wiredTopology = key
		c.connectMedia(talk, hears)
	}
}

// connectMedia relays between two legs that only hear each other, and mixes otherwise.
func (c *liveCall) connectMedia(talk []*leg, hears map[*leg][]*leg) {
	if len(hears) == 2 && len(talk) == 2 {
		c.closeMixer()
		media.Bridge(talk[0].stream, talk[1].stream)
		return
	}
	if len(hears) == 0 {
		c.closeMixer()
		for _, l := range c.parties() {
			l.stream.Unbridge()
		}
		return
	}
	if c.mixer == nil {
		m, err := c.sw.cfg.Media.NewMixer()
		if err != nil {
			c.sw.cfg.Log.Error("mixer not created", "call", c.id, "err", err)
			return
		}
		c.mixer = m
	}
	c.mixer.Set(streams(hears))
	for _, l := range c.parties() {
		if _, ok := hears[l]; !ok {
			l.stream.Unbridge()
		}
	}
}

func (c *liveCall) closeMixer() {
	if c.mixer != nil {
		c.mixer.Close()
		c.mixer = nil
	}
}

// parties returns the connected legs, including supervisors.
func (c *liveCall) parties() []*leg {
	var all []*leg
	for _, l := range c.legs {
		if l.up() && l.stream != nil && l.owner.Load() == c {
			all = append(all, l)
		}
	}
	return all
}

// talking returns the parties that hear each other.
func (c *liveCall) talking() []*leg {
	var all []*leg
	for _, l := range c.parties() {
		if l.role != "monitor" && !l.isolated && !l.heldAPI && !c.isHolding(l) {
			all = append(all, l)
		}
	}
	return all
}

// hearing returns the legs that each leg hears.
func (c *liveCall) hearing(talk []*leg) map[*leg][]*leg {
	hears := map[*leg][]*leg{}
	if len(talk) > 1 {
		for _, l := range talk {
			for _, other := range talk {
				if other != l {
					hears[l] = append(hears[l], other)
				}
			}
		}
	}
	for _, m := range c.monitors {
		m.addTo(c, hears, talk)
	}
	return hears
}

// hearsNothing reports whether all heard legs are muted or there are none.
func hearsNothing(heard []*leg) bool {
	for _, l := range heard {
		if !l.muted {
			return false
		}
	}
	return true
}

// setComfortNoise sends silence to a leg that hears no other leg, because phones and carriers hang up on lines
// without RTP.
func (l *leg) setComfortNoise(on bool) {
	if l.comfortNoise != on {
		l.comfortNoise = on
		l.stream.SetComfort(on)
	}
}

// loopClipFor returns the clip that a leg hears in a loop: music on hold, or ringback while another party is dialled.
func (c *liveCall) loopClipFor(l *leg) *clip.Clip {
	switch {
	case l.emergency:
		return nil
	case l.heldAPI:
		return c.music()
	case c.scripted != nil && l == c.scripted.leg:
		return c.scripted.loopClip()
	case c.transfer != nil && (c.transfer.running() || c.transfer.returning):
		return c.transfer.loopClipFor(l)
	case (c.b == nil || c.announcement.isPending()) && l == c.a && l.in == nil:
		return c.ringback()
	case !c.isHolding(l) && c.isHeldByPhone():
		return c.music()
	}
	return nil
}

// isHolding reports whether a leg is the phone of a user that has put the call on hold. A trunk that does so plays its own music. In an
// emergency call both sides stay connected.
func (c *liveCall) isHolding(l *leg) bool {
	return l.heldPeer && l.caller.UserID != "" && !c.isEmergency()
}

// isHeldByPhone reports whether the phone of a user holds and fewer than two other parties remain. In a conference the others go on
// talking.
func (c *liveCall) isHeldByPhone() bool {
	return len(c.talking()) < 2 && slices.ContainsFunc(c.parties(), c.isHolding)
}

// setLoop plays a clip in a loop until the next call; nil stops.
func (l *leg) setLoop(loop *clip.Clip) {
	if l.loopClip == loop {
		return
	}
	l.loopClip = loop
	if l.playback != nil {
		l.playback.Stop()
		l.playback = nil
	}
	if loop != nil {
		l.playback = l.stream.Play(loop, media.PlayOptions{Loop: true})
	}
}

// ringback returns the ringing tone of the organisation's country. It returns the same clip each time, so that a
// playing tone does not restart.
func (c *liveCall) ringback() *clip.Clip {
	country := c.policy.Country
	if tone, ok := c.sw.tones.Load(country); ok {
		return tone.(*clip.Clip)
	}
	tone, _ := c.sw.tones.LoadOrStore(country, clip.Ringback(country))
	return tone.(*clip.Clip)
}

func streams(hears map[*leg][]*leg) map[*media.Stream][]*media.Stream {
	all := make(map[*media.Stream][]*media.Stream, len(hears))
	for l, others := range hears {
		for _, o := range others {
			all[l.stream] = append(all[l.stream], o.stream)
		}
		if len(others) == 0 {
			all[l.stream] = nil
		}
	}
	return all
}

// topologyKey returns equal strings for equal topologies.
func topologyKey(hears map[*leg][]*leg) string {
	lines := make([]string, 0, len(hears))
	for l, others := range hears {
		ids := make([]string, len(others))
		for i, o := range others {
			ids[i] = o.id
		}
		sort.Strings(ids)
		lines = append(lines, l.id+"<"+strings.Join(ids, ","))
	}
	sort.Strings(lines)
	return strings.Join(lines, ";")
}

// watch starts the detection of digits and of missing RTP. A phone that lost its network sends no BYE. A leg without
// RTP may still exist (one-way audio, silence suppression), so a re-INVITE checks its dialog. A leg that does not
// answer ends.
func (c *liveCall) watch(l *leg) {
	c.subscribeDTMF(l)
	l.stream.OnSilence(c.sw.silenceLimit(l), func() {
		c := l.owner.Load()
		c.inbox.Push(message{run: func(ctx context.Context) { c.onRTPTimeout(l) }})
	})
}

// silenceLimit returns the time without RTP after which a leg is probed.
func (s *Switch) silenceLimit(l *leg) time.Duration {
	if s.cfg.BrowserTimeout > 0 && l.isBrowser() {
		return s.cfg.BrowserTimeout
	}
	return s.cfg.MediaTimeout
}

// isBrowser reports whether the party is a phone in a browser: those alone connect by WebSocket.
func (l *leg) isBrowser() bool {
	return l.in != nil && l.in.Transport.IsWebSocket() || l.phone != nil && l.phone.Binding.Transport.IsWebSocket()
}

func (c *liveCall) onRTPTimeout(l *leg) {
	if !l.up() || l.offerPending || c.done || l.owner.Load() != c || c.isEmergency() { // an emergency caller may have to stay silent
		return
	}
	c.addEntry("media.silent", l, detail{"seconds": int(c.sw.silenceLimit(l) / time.Second)})
	l.rtpProbing = true
	c.offerMedia(l, l.session.LocalMedia(), func(_ context.Context, _ sdp.Description, err error) {
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
