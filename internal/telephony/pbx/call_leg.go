package pbx

import (
	"net/netip"
	"sync/atomic"
	"time"

	"soniq/internal/protocol/media"
	"soniq/internal/protocol/media/clip"
	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/sdp"
	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/guard"
	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/telephony/call"
)

// leg is one side of a call: a SIP dialog and a media stream. The goroutine of the owning call owns its fields,
// except the atomic ones. Each embedded struct has the state of one concern.
type leg struct {
	id          string
	publishedID atomic.Pointer[string]   // id, for readers outside the call's goroutine
	owner       atomic.Pointer[liveCall] // call that gets the leg's events; changes when a transfer joins two calls
	legParty
	legDialog
	legMedia
	legState
}

// legParty is the party of a leg.
type legParty struct {
	role      string // caller, callee, agent, monitor
	caller    Caller // user of the phone; zero for external parties
	number    string // number of the other end in the call's record
	phone     *Phone // registered contact that was rung
	trunk     *TrunkOut
	trunkID   string // trunk of an inbound or outbound leg
	emergency bool   // connected to an emergency service
	release   []func()
}

// legDialog is the SIP dialog of a leg.
type legDialog struct {
	in           *sip.Inbound // set if the leg called us, otherwise nil
	sip          *sip.Leg
	dial         *forkedDial     // the dial while it rings
	restarted    *restartState   // state from before a restart; nil for most legs
	offer        sdp.Description // offer in its INVITE; zero for a late offer or a leg we invited
	localAnswer  []byte          // our answer to offer, fixed by the first early media
	offerPending bool            // a re-INVITE of ours is in progress
	rtpProbing   bool            // no RTP received; a re-INVITE checks the dialog
	afterOffer   []func()        // run after that re-INVITE
	onAnswer     []func()        // run when the leg answers
	onOver       []func()        // run when the leg ends
}

// legMedia is the audio of a leg.
type legMedia struct {
	stream       *media.Stream
	session      *sdp.Session
	heldPeer     bool // held by its phone (re-INVITE from the peer)
	heldAPI      bool // held by API command
	muted        bool
	isolated     bool // temporarily without audio from and to the other parties
	comfortNoise bool
	loopClip     *clip.Clip // clip that is played in a loop
	playback     *media.Playback
	quality      *media.Quality
	qualityAt    time.Time         // time of the last published measurement
	dtmfPacer    guard.RateLimiter // rate limit of reported digits
}

// legState is the progress of a leg.
type legState struct {
	started, rang, answered, ended time.Time
	over, dirty                    bool // dirty: its row has to be written
	reason                         string
	status                         int // SIP status of the failure
}

// restartState is the state of a leg in the process before the restart.
type restartState struct {
	via           netip.Addr
	target        string           // URI of its contact
	lostTransport sipmsg.Transport // transport of a connection that ended with the process; empty if none is needed
}

// lostTransport returns the transport of a connection that the leg needs again; empty if none.
func (l *leg) lostTransport() sipmsg.Transport {
	if l.restarted == nil {
		return ""
	}
	return l.restarted.lostTransport
}

func (l *leg) up() bool { return l != nil && !l.over && !l.answered.IsZero() }

// via returns the address of the leg's signalling. Its media may come from the same address.
func (l *leg) via() netip.Addr {
	switch {
	case l.in != nil:
		return l.in.Source.Addr()
	case l.phone != nil:
		return l.phone.Binding.Source.Addr()
	case l.trunk != nil: // if the target is an IP address
		at, _ := netip.ParseAddrPort(l.trunk.Target.Host)
		return at.Addr()
	}
	if l.restarted != nil {
		return l.restarted.via
	}
	return netip.Addr{}
}

// apply configures the leg's stream with the negotiated session.
func (l *leg) apply() { l.stream.Apply(l.session, l.via()) }

// deliver passes a signalling event to the call that owns the leg. If that call has ended and the leg did not move to
// another call, the event is dropped.
func (l *leg) deliver(e sip.Event) {
	for {
		c := l.owner.Load()
		if c.inbox.Push(message{leg: l, event: e}) || l.owner.Load() == c {
			return
		}
	}
}

// releaseResources returns the trunk's channel and the place in the organisation's limits, once.
func (l *leg) releaseResources() {
	for _, f := range l.release {
		f()
	}
	l.release = nil
}

// closeStream closes the leg's ports and keeps its quality measurements.
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

// codec returns the codec sent to the leg.
func (l *leg) codec() codec.Codec { return l.session.Codec() }

// state returns the leg's row.
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
		s.AnsweredAt = latest(l.answered, l.started) // a leg of a consultation starts again in the call it is transferred to
		s.Codec, s.SRTP = l.codec().String(), l.session.Secure()
	}
	return s
}

// party returns the leg as party of the call.
func (l *leg) party() call.Party {
	p := call.Party{Role: l.role, UserID: l.caller.UserID, DeviceID: l.caller.DeviceID, Name: l.caller.Name, Extension: l.caller.Extension,
		TrunkID: l.trunkID, Number: l.number}
	if l.sip != nil {
		p.SIPCallID = l.sip.CallID()
	}
	return p
}
