package pbx

import (
	"net/netip"
	"sync/atomic"
	"time"

	"soniq/internal/protocol/media"
	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/call"
)

// A leg is one side of a call: a dialog beside a media stream. Its fields belong to the goroutine of the call that owns it.
type leg struct {
	id    string
	shown atomic.Pointer[string]   // id, for those who are not in its call's goroutine
	owner atomic.Pointer[liveCall] // who gets its events; changes when a transfer joins two calls

	in      *sip.Inbound // of a leg that called us, else nil
	sip     *sip.Leg
	stream  *media.Stream
	session *media.Session
	hunt    *hunt // while it rings

	role    string // caller, callee, agent, monitor
	caller  Caller // the user whose phone it is; zero for the outside
	number  string // of the other end, as written down
	phone   *Phone // the registered contact rung
	trunk   *TrunkOut
	trunkID string // of the trunk it came in by or left by
	release []func()
	earlier *earlier // what it was before a restart; nil for most

	offer     media.Description // its INVITE's; zero for a late offer or a leg we invited
	toPeer    []byte            // our answer to it, fixed by the first early media
	busy      bool              // a re-INVITE of ours is under way
	idle      []func()          // what waits for that
	onAnswer  []func()          // who waits for its answer
	onOver    []func()          // who waits for its end
	heldPeer  bool              // its phone holds the other side
	heldAPI   bool              // it is on hold, by command
	muted     bool
	help      bool // an emergency service is called
	apart     bool // it hears nobody and nobody hears it, for now
	over      bool
	comforted bool
	probed    bool        // it sends nothing, and is asked whether it is there
	clip      *media.Clip // what it is played over and over
	playback  *media.Playback

	started, rang, answered, ended time.Time
	reason                         string
	status                         int // SIP status it failed with
	quality                        *media.Quality
	soundsAt                       time.Time // the measurement that was told last
	dirty                          bool
	keys                           sip.Pacer // of those that are told of
}

// earlier is what a leg was in the process before this one.
type earlier struct {
	via    netip.Addr
	target string        // its contact
	lost   sip.Transport // of its connection that ended with the process; "" where it needs none
}

// lost is the transport of a connection that the leg needs again; "" for none.
func (l *leg) lost() sip.Transport {
	if l.earlier == nil {
		return ""
	}
	return l.earlier.lost
}

func (l *leg) up() bool { return l != nil && !l.over && !l.answered.IsZero() }

// via is the address the leg's signalling comes from, which its media may come from too.
func (l *leg) via() netip.Addr {
	switch {
	case l.in != nil:
		return l.in.Source.Addr()
	case l.phone != nil:
		return l.phone.Binding.Source.Addr()
	case l.trunk != nil: // where it is given by address
		at, _ := netip.ParseAddrPort(l.trunk.Target.Host)
		return at.Addr()
	}
	if l.earlier != nil {
		return l.earlier.via
	}
	return netip.Addr{}
}

// apply points the leg's stream at what its session agreed.
func (l *leg) apply() { l.stream.Apply(l.session, l.via()) }

// tell hands an event of signalling to the call that owns the leg. A call that is over has passed the leg on, or is
// past caring.
func (l *leg) tell(e sip.Event) {
	for {
		c := l.owner.Load()
		if c.inbox.push(message{leg: l, event: e}) || l.owner.Load() == c {
			return
		}
	}
}

// free gives back the trunk's channel and the place in the organisation's limits, once.
func (l *leg) free() {
	for _, f := range l.release {
		f()
	}
	l.release = nil
}

// closeStream frees the leg's ports and keeps how it sounded.
func (l *leg) closeStream() {
	if l.stream == nil {
		return
	}
	if !l.answered.IsZero() {
		q := l.stream.Quality()
		l.quality = &q
	}
	l.stream.Close()
}

// codec is what is sent to the leg.
func (l *leg) codec() media.Codec { return l.session.Codec() }

// state describes the leg for its row.
func (l *leg) state() call.LegState {
	s := call.LegState{ID: l.id, Role: l.role, UserID: l.caller.UserID, DeviceID: l.caller.DeviceID, TrunkID: l.trunkID, Number: l.number,
		Status: "ringing", StartedAt: l.started, AnsweredAt: l.answered, EndedAt: l.ended, EndReason: l.reason, SIPStatus: l.status}
	if l.sip != nil {
		s.SIPCallID = l.sip.CallID()
	}
	switch {
	case l.over && l.answered.IsZero():
		s.Status = "failed"
	case l.over:
		s.Status = "ended"
	case l.heldAPI:
		s.Status, s.HeldBy = "held", "api"
	case l.heldPeer:
		s.Status, s.HeldBy = "held", "peer"
	case !l.answered.IsZero():
		s.Status = "answered"
	}
	if !l.answered.IsZero() {
		s.Codec, s.SRTP = l.codec().String(), l.session.Secure()
	}
	return s
}

// party describes who the leg is.
func (l *leg) party() call.Party {
	p := call.Party{Role: l.role, UserID: l.caller.UserID, DeviceID: l.caller.DeviceID, Name: l.caller.Name, Extension: l.caller.Extension,
		TrunkID: l.trunkID, Number: l.number}
	if l.sip != nil {
		p.SIPCallID = l.sip.CallID()
	}
	return p
}
