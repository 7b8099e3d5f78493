package sip

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// DialogState is what a dialog needs to go on after a restart. It holds no
// secrets: Credentials are to be filled in again before Restore where the
// other side asks for them.
type DialogState struct {
	CallID    string         `json:"call_id"` // empty: there is nothing to restore
	Inbound   bool           `json:"inbound"`
	Local     string         `json:"local"` // From value of our requests, with the tag
	Remote    string         `json:"remote"`
	LocalTag  string         `json:"local_tag"`
	RemoteTag string         `json:"remote_tag"`
	LocalSeq  uint32         `json:"local_seq"`
	RemoteSeq uint32         `json:"remote_seq"`
	Target    string         `json:"target"`
	Routes    []string       `json:"routes,omitempty"`
	Contact   string         `json:"contact"`
	Addr      netip.AddrPort `json:"addr"`
	Transport Transport      `json:"transport"`
	Name      string         `json:"name,omitempty"` // the TLS name of the other side
	Ours      bool           `json:"ours,omitempty"` // we made the connection
	Symmetric bool           `json:"symmetric,omitempty"`
	Updates   bool           `json:"updates,omitempty"` // it takes UPDATE
	SDP       []byte         `json:"sdp,omitempty"`     // our last offer or answer, where it holds no keys
	Session   int            `json:"session,omitempty"` // seconds between refreshes, 0 for none
	Refresher bool           `json:"refresher,omitempty"`

	Credentials Credentials `json:"-"`
}

// Lost reports whether the way to the other side ends with the process: a
// connection that a phone made to us. Rebind gives it a new one.
func (d DialogState) Lost() bool { return d.Symmetric && d.Transport.stream() && !d.Ours }

// seqRoom is what the CSeq jumps by: more than was sent since the snapshot.
const seqRoom = 100

// Snapshot is the dialog's state, for Restore in another process. That of an
// inbound call that rings is what it will be when it is answered, so that it
// can be kept before the answer leaves. CallID is empty when an outgoing leg is
// not answered, or the leg is over. It waits for the shard and must
// not be called from an event callback.
func (l *Leg) Snapshot() DialogState {
	result := make(chan DialogState, 1)
	if !l.shard.perform(func(*shard) { result <- l.snapshot() }) {
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
	if l.over.Load() || l.state != legConfirmed && !(l.inbound && (l.state == legAnswered || l.state == legRinging)) {
		return DialogState{}
	}
	d := DialogState{
		CallID: l.callID, Inbound: l.inbound, Local: l.local, Remote: l.remote,
		LocalTag: l.localTag, RemoteTag: l.remoteTag, LocalSeq: l.localSeq, RemoteSeq: l.remoteSeq,
		Target: l.path.target, Routes: l.path.routes, Contact: l.contact,
		Addr: l.flow.addr, Transport: l.flow.transport(), Symmetric: l.symmetric,
		Updates: l.updates,
	}
	if !bytes.Contains(l.sdp, []byte("a=crypto:")) && !bytes.Contains(l.sdp, []byte("a=ice-pwd:")) {
		d.SDP = l.sdp // with keys in it, the session is offered anew instead
	}
	if c := l.flow.conn; c != nil {
		d.Name, d.Ours = c.key.name, c.ours
	}
	if l.session.running {
		d.Session, d.Refresher = int(l.session.interval/time.Second), l.session.ours
	}
	return d
}

// Restore takes a dialog up again, and reports on it through on. Called from
// the Handler's Serve it is there before the first message comes; otherwise
// the other side's requests get 481 until then. A phone that was connected to
// us is reached when it has sent something over its new connection. Lost
// follows when the dialog is there already.
func (s *Server) Restore(d DialogState, on func(Event)) (*Leg, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	sh := s.shardOf(d.CallID)
	l := &Leg{
		shard: sh, callID: d.CallID, gone: make(chan struct{}), inbound: d.Inbound, on: on, state: legConfirmed,
		local: d.Local, remote: d.Remote, localTag: d.LocalTag, remoteTag: d.RemoteTag,
		localSeq: d.LocalSeq + seqRoom, remoteSeq: d.RemoteSeq,
		path: path{target: d.Target, routes: d.Routes}, flow: s.restoredFlow(d), symmetric: d.Symmetric,
		updates: d.Updates, sdp: d.SDP, keys: keyring{creds: d.Credentials},
	}
	l.owner = l
	l.key = sh.dialogKey(l.callID, l.localTag)
	l.session.init(l)
	l.contact = d.Contact
	if a, err := readAddress(d.Contact); err == nil {
		l.contact = s.contact(a.uri, l.flow) // our address may have changed
	}
	if d.Inbound {
		s.calls.Add(1)
		l.counted.Store(true)
	}
	if !sh.post(func(*shard) { l.resume(d) }) {
		l.uncount()
		return nil, ErrClosed
	}
	return l, nil
}

// resume puts the dialog into its shard.
func (l *Leg) resume(d DialogState) {
	if l.shard.legs[l.key] != nil {
		l.finish(Lost{Why: "the dialog is there already"})
		l.bury()
		return
	}
	l.shard.legs[l.key] = l
	l.session.start(time.Duration(d.Session)*time.Second, d.Refresher)
}

var errState = errors.New("sip: no dialog to restore")

func (d *DialogState) check() error {
	if d.CallID == "" || d.LocalTag == "" || !d.Addr.IsValid() || d.LocalSeq > maxSeq-seqRoom || d.Session < 0 {
		return errState
	}
	if _, err := ParseURI(d.Target); err != nil {
		return fmt.Errorf("sip: restore %s: target: %w", d.CallID, err)
	}
	return nil
}

// restoredFlow is the way to the other side. A connection of its own making is
// gone with the process that had it.
func (s *Server) restoredFlow(d DialogState) flow {
	if !d.Transport.stream() || d.Ours {
		return s.to(d.Transport, d.Addr, d.Name)
	}
	return flow{addr: d.Addr, conn: lostConn(s, connKey{kind: d.Transport, addr: d.Addr, name: d.Name})}
}

// Rebind moves a phone's leg to where the phone registered anew, after it lost
// its connection or its address. Other legs stay.
func (l *Leg) Rebind(b Binding) {
	f := l.shard.srv.bindingFlow(&b)
	l.post(func() {
		if l.symmetric {
			l.flow = f
		}
	})
}
