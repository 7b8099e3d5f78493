package sip

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"soniq/internal/protocol/sip/digest"
	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/protocol/sip/transport"
)

// Snapshot and restoration of dialogs across a restart.

// DialogState holds all that is needed to restore a dialog after a restart. It holds no secrets: fill in Credentials
// before Restore if the peer challenges requests.
type DialogState struct {
	CallID      string           `json:"call_id"` // empty: nothing to restore
	Inbound     bool             `json:"inbound"`
	Local       string           `json:"local"` // From value of our requests, with the tag
	Remote      string           `json:"remote"`
	LocalTag    string           `json:"local_tag"`
	RemoteTag   string           `json:"remote_tag"`
	LocalSeq    uint32           `json:"local_seq"`
	RemoteSeq   uint32           `json:"remote_seq"`
	Target      string           `json:"target"`
	Routes      []string         `json:"routes,omitempty"`
	Contact     string           `json:"contact"`
	Addr        netip.AddrPort   `json:"addr"`
	Transport   sipmsg.Transport `json:"transport"`
	Name        string           `json:"name,omitempty"` // TLS name of the peer
	WeConnected bool             `json:"ours,omitempty"` // this server made the connection
	Symmetric   bool             `json:"symmetric,omitempty"`
	Updates     bool             `json:"updates,omitempty"` // the peer allows UPDATE
	SDP         []byte           `json:"sdp,omitempty"`     // our last offer or answer, unless it holds keys
	Session     int              `json:"session,omitempty"` // seconds between refreshes, 0 for none
	Refresher   bool             `json:"refresher,omitempty"`
	Realms      []string         `json:"realms,omitempty"` // realms that Credentials answer
	Client      netip.AddrPort   `json:"client,omitzero"`  // the peer behind an edge
	Account     string           `json:"account,omitempty"`
	Trunk       string           `json:"trunk,omitempty"`

	Credentials digest.Credentials `json:"-"`
}

// LostWithProcess reports whether the flow to the peer ends with the process: it is a connection that a phone made to
// us. Rebind gives the leg a new one.
func (d DialogState) LostWithProcess() bool {
	return d.Symmetric && d.Transport.IsConnection() && !d.WeConnected
}

// restoreSeqGap is added to the CSeq on Restore. It exceeds the number of requests sent since the snapshot.
const restoreSeqGap = 100

// Snapshot returns the state of the dialog, for Restore in another process. For an inbound call that rings it is the
// state after the answer, so that it can be stored before the answer leaves. CallID is empty if an outgoing leg is
// not answered, or the leg is over. Snapshot waits for the shard and must not be called from an event callback.
func (l *Leg) Snapshot() DialogState {
	result := make(chan DialogState, 1)
	if !l.shard.runOrEnqueue(func(*shard) { result <- l.snapshot() }) {
		return DialogState{}
	}
	select {
	case d := <-result:
		return d
	case <-l.shard.srv.done:
		return DialogState{}
	}
}

func (l *Leg) snapshot() DialogState {
	if l.ended.Load() || l.state != legConfirmed && !(l.inbound && (l.state == legAnswered || l.state == legRinging)) {
		return DialogState{}
	}
	d := DialogState{
		CallID: l.callID, Inbound: l.inbound, Local: l.local, Remote: l.remote,
		LocalTag: l.localTag, RemoteTag: l.remoteTag, LocalSeq: l.localSeq, RemoteSeq: l.remoteSeq,
		Target: l.route.target, Routes: l.route.routes, Contact: l.contact,
		Addr: l.flow.Addr, Transport: l.flow.Transport(), Symmetric: l.symmetric,
		Updates: l.peerAllowsUpdate, Client: l.flow.Client, Account: l.account, Trunk: l.trunk,
	}
	if l.digestClient.Credentials.Username != "" {
		d.Realms = l.digestClient.KnownRealms()
	}
	if !bytes.Contains(l.localSDP, []byte("a=crypto:")) && !bytes.Contains(l.localSDP, []byte("a=ice-pwd:")) {
		d.SDP = l.localSDP // SDP with keys is not stored; the session is offered anew instead
	}
	if c := l.flow.Conn; c != nil {
		d.Name, d.WeConnected = c.Key.Name, c.WeConnected
	}
	if l.sessionTimer.running {
		d.Session, d.Refresher = int(l.sessionTimer.interval/time.Second), l.sessionTimer.weRefresh
	}
	return d
}

// Restore restores a dialog and reports its events to on. If it is called from the Handler's Serve, the dialog exists
// before the first message arrives. Otherwise the peer's requests get 481 until then. A phone that was connected to
// us is reachable once it has sent something over its new connection. Lost follows if the dialog already exists.
func (s *Server) Restore(d DialogState, on func(Event)) (*Leg, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	sh := s.shardOf(d.CallID)
	l := &Leg{
		shard: sh, callID: d.CallID, done: make(chan struct{}), inbound: d.Inbound, onEvent: on, state: legConfirmed,
		local: d.Local, remote: d.Remote, localTag: d.LocalTag, remoteTag: d.RemoteTag,
		localSeq: d.LocalSeq + restoreSeqGap, remoteSeq: d.RemoteSeq,
		route: dialogRoute{target: d.Target, routes: d.Routes}, flow: s.restoredFlow(d), symmetric: d.Symmetric, account: d.Account,
		trunk: d.Trunk, peerAllowsUpdate: d.Updates, localSDP: d.SDP, digestClient: digest.Client{Credentials: d.Credentials,
			Pins: s.realmPins, Realms: d.Realms},
	}
	l.flow.Client = d.Client
	l.owner = l
	l.key = sh.dialogKey(l.callID, l.localTag)
	l.sessionTimer.init(l)
	l.contact = d.Contact
	if a, err := sipmsg.ReadAddress(d.Contact); err == nil {
		l.contact = s.layer.ContactValue(a.URI, l.flow) // our address may have changed since
	}
	if d.Inbound {
		s.calls.Add(1)
		l.countedAsCall.Store(true)
	}
	if !sh.enqueue(func(*shard) { l.addToShard(d) }) {
		l.uncountCall()
		return nil, ErrClosed
	}
	return l, nil
}

// addToShard adds the dialog to its shard.
func (l *Leg) addToShard(d DialogState) {
	if l.shard.legs[l.key] != nil {
		l.emitFinal(Lost{Why: "the dialog is there already"})
		l.markTerminated()
		return
	}
	l.shard.legs[l.key] = l
	l.sessionTimer.start(time.Duration(d.Session)*time.Second, d.Refresher)
}

var errNothingToRestore = errors.New("sip: restore: the dialog state is incomplete")

func (d *DialogState) check() error {
	if d.CallID == "" || d.LocalTag == "" || !d.Addr.IsValid() || d.LocalSeq > sipmsg.MaxSeq-restoreSeqGap || d.Session < 0 {
		return errNothingToRestore
	}
	if _, err := sipmsg.ParseURI(d.Target); err != nil {
		return fmt.Errorf("sip: restore %s: target: %w", d.CallID, err)
	}
	return nil
}

// restoredFlow returns the flow to the peer. A connection that the peer made ended with the process that accepted it.
func (s *Server) restoredFlow(d DialogState) transport.Flow {
	if !d.Transport.IsConnection() || d.WeConnected {
		return s.layer.FlowTo(d.Transport, d.Addr, d.Name)
	}
	key := transport.ConnKey{Transport: d.Transport, Addr: d.Addr, Name: d.Name}
	return transport.Flow{Addr: d.Addr, Conn: transport.NewClosedConn(s.layer, key)}
}

// Rebind moves a phone's leg to the flow of a new registration, after the phone lost its connection or its address.
// It does nothing for other legs.
func (l *Leg) Rebind(b Binding) {
	f := l.shard.srv.bindingFlow(&b)
	l.enqueue(func() {
		if l.symmetric {
			l.flow = f
		}
	})
}
