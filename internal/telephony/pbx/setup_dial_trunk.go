package pbx

import (
	"context"
	"slices"
	"strings"
	"time"

	"soniq/internal/protocol/media/sdp"
	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/sipmsg"
)

// unrungTrunk returns the leg of a trunk that has not rung yet, otherwise nil.
func (h *forkedDial) unrungTrunk() *leg {
	if len(h.legs) == 1 && h.legs[0].trunk != nil && h.legs[0].rang.IsZero() {
		return h.legs[0]
	}
	return nil
}

// moreTrunks reports whether another trunk can be tried.
func (h *forkedDial) moreTrunks() bool {
	return h.to.outbound != nil && h.next < len(h.to.outbound.Trunks)
}

// Limits of a trunk before its first 18x. 100 Trying counts as a response.
const (
	trunkResponseTimeout = 3750 * time.Millisecond // no response at all: the INVITE and its repetitions at 0.5, 1.5 and 3.5 s were lost
	trunkSetupTimeout    = 20 * time.Second        // responses, but no 18x
)

// startTrunkTimer starts the time limit of a trunk to ring. The last trunk has the ring time, if that is longer.
func (h *forkedDial) startTrunkTimer() {
	switch {
	case h.over || h.unrungTrunk() == nil:
	case h.moreTrunks():
		h.startTimer(trunkSetupTimeout)
	default:
		h.startTimer(max(trunkSetupTimeout, h.ringFor))
	}
}

// tryTrunk sends the INVITE through the next trunk with a free channel.
func (h *forkedDial) tryTrunk(ctx context.Context) {
	for !h.over && len(h.legs) == 0 && h.next < len(h.to.outbound.Trunks) {
		t := &h.to.outbound.Trunks[h.next]
		h.next++
		var release func()
		if t.Acquire != nil {
			var ok bool
			if release, ok = t.Acquire(h.preempt); !ok {
				h.keepBestFailure(sip.Failed{Status: 503})
				continue
			}
		}
		l := h.newLeg()
		l.trunk, l.trunkID, l.number, l.emergency = t, t.ID, h.to.outbound.Number, h.isEmergency()
		if release != nil {
			l.release = append(l.release, release)
		}
		h.invite(ctx, l, h.trunkInvite(t), profileOf("", t.SRTP))
		h.startTrunkTimer()
		h.recordPlaced(ctx)
	}
	h.failIfNoneLeft(ctx)
}

// recordPlaced records that an emergency call was placed.
func (h *forkedDial) recordPlaced(ctx context.Context) {
	if placed := h.to.outbound.OnPlaced; placed != nil {
		h.c.writes.Write(ctx, "emergency call", func(ctx context.Context) error { return placed(ctx, h.c.id) })
	}
}

// filterCodecs removes the codecs that a trunk does not accept from an offer. If none would be left, it returns the
// offer unchanged.
func filterCodecs(m sdp.LocalMedia, codecs []string) sdp.LocalMedia {
	kept := m
	kept.Formats = nil
	audio := false
	for _, f := range m.Formats {
		_, isAudio := f.Codec()
		wanted := slices.ContainsFunc(codecs, func(name string) bool { return strings.EqualFold(name, f.Name) })
		if wanted || !isAudio {
			kept.Formats = append(kept.Formats, f)
		}
		audio = audio || wanted && isAudio
	}
	if !audio {
		return m
	}
	return kept
}

// preempt ends the call because an emergency call needs its channel, or because outbound calls were stopped.
func (h *forkedDial) preempt() {
	h.c.inbox.Push(message{run: func(context.Context) { h.c.endPreempted() }})
}

// trunkInvite presents the caller's number as configured for the trunk.
func (h *forkedDial) trunkInvite(t *TrunkOut) sip.Outgoing {
	shown := sipmsg.Address{Display: firstNonEmpty(h.to.outbound.Name, h.from.Display),
		URI: sipmsg.URI{User: h.to.callerIDOr(h.from.URI.User), Host: t.Domain}}
	o := sip.Outgoing{URI: "sip:" + t.Number + "@" + t.Target.Host, NextHop: t.Target, Trunk: TrunkAccount(h.c.new.Org, t.ID),
		Credentials: t.Credentials, Location: h.to.outbound.Location, Header: t.Header, From: shown,
		To: sipmsg.Address{URI: sipmsg.URI{User: t.Number}}}
	if h.moreTrunks() || !h.isEmergency() {
		o.ResponseTimeout = trunkResponseTimeout
	}
	if !h.to.outbound.Emergency {
		o.Passports = h.passports
	}
	switch t.Mode {
	case "pai":
		o.Identity = shown
	case "rpid":
		o.RemoteParty = shown
	}
	return o
}
