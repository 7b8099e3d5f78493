package pbx

import (
	"sort"
	"strings"

	"soniq/internal/protocol/media"
)

// wireMedia configures the media to match the state of the call: which leg hears which. It may be called at any time;
// it changes only differences.
func (c *liveCall) wireMedia() {
	for _, l := range c.parties() {
		l.setLoop(c.loopClipFor(l))
	}
	talk := c.talking()
	hears := c.hearing(talk)
	for _, l := range c.parties() {
		l.setComfortNoise(hearsNothing(hears[l]))
	}
	if key := topologyKey(hears); key != c.wiredTopology {
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
		m, err := c.sw.Media.NewMixer()
		if err != nil {
			c.sw.Log.Error("mixer not created", "call", c.id, "err", err)
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
		if l.role != "monitor" && !l.isolated && !l.heldAPI {
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
func (c *liveCall) loopClipFor(l *leg) *media.Clip {
	switch {
	case l.emergency:
		return nil
	case l.heldAPI:
		return c.music()
	case c.scripted != nil && l == c.scripted.leg:
		return c.scripted.loopClip()
	case c.transfer != nil:
		return c.transfer.loopClipFor(l)
	case (c.b == nil || c.announcement.isPending()) && l == c.a && l.in == nil:
		return c.ringback()
	}
	return nil
}

// setLoop plays a clip in a loop until the next call; nil stops.
func (l *leg) setLoop(clip *media.Clip) {
	if l.loopClip == clip {
		return
	}
	l.loopClip = clip
	if l.playback != nil {
		l.playback.Stop()
		l.playback = nil
	}
	if clip != nil {
		l.playback = l.stream.Play(clip, media.PlayOptions{Loop: true})
	}
}

// ringback returns the ringing tone of the organisation's country. It returns the same clip each time, so that a
// playing tone does not restart.
func (c *liveCall) ringback() *media.Clip {
	country := c.policy.Country
	if clip, ok := c.sw.tones.Load(country); ok {
		return clip.(*media.Clip)
	}
	clip, _ := c.sw.tones.LoadOrStore(country, media.Ringback(country))
	return clip.(*media.Clip)
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
