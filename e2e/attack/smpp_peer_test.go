package attack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
	"soniq/internal/protocol/smpp"
)

// smppPeer speaks SMPP by single PDUs over a connection.
type smppPeer struct {
	net.Conn
	t testing.TB
	n uint32
}

// dialSMPP connects to the server from an address.
func dialSMPP(t testing.TB, s *rig.Server, from string) *smppPeer {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 10 * time.Second}
	c, err := d.Dial("tcp", s.SMPP)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(25 * time.Second))
	return &smppPeer{Conn: c, t: t}
}

// send writes a PDU. A number that is given replaces the next sequence number.
func (p *smppPeer) send(c smpp.Command, body smpp.Body, sequence ...uint32) {
	p.t.Helper()
	p.n++
	pdu := smpp.PDU{Command: c, Sequence: p.n, Body: body}
	if len(sequence) > 0 {
		pdu.Sequence = sequence[0]
	}
	b, err := pdu.Encode()
	if err != nil {
		p.t.Fatal(err)
	}
	_, _ = p.Write(b) // if the connection is closed, the read tells
}

// receive returns the next PDU; ok is false at the end of the connection.
func (p *smppPeer) receive() (pdu smpp.PDU, ok bool) {
	var head [4]byte
	if _, err := io.ReadFull(p, head[:]); err != nil {
		return pdu, false
	}
	b := make([]byte, min(max(binary.BigEndian.Uint32(head[:]), 16), smpp.MaxPDU))
	copy(b, head[:])
	if _, err := io.ReadFull(p, b[4:]); err != nil {
		return pdu, false
	}
	pdu, _ = smpp.Decode(b)
	return pdu, true
}

// isEnded reports whether the server ended the connection, after what it sent before.
func (p *smppPeer) isEnded() bool {
	_, err := io.Copy(io.Discard, p)
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

// answer sends a request and returns the response as command and status, or EOF.
func (p *smppPeer) answer(c smpp.Command, body smpp.Body) string {
	p.t.Helper()
	p.send(c, body)
	for {
		pdu, ok := p.receive()
		switch {
		case !ok:
			return "EOF"
		case pdu.Command.IsResponse():
			return fmt.Sprint(pdu.Command, " ", pdu.Status)
		}
	}
}

// submission returns a short message.
func submission(from, to, text string) *smpp.Message {
	return &smpp.Message{Source: smpp.ParseAddress(from), Destination: smpp.ParseAddress(to), ShortMessage: []byte(text)}
}

// smppOrg is an organisation with a number that sends messages, and an application.
type smppOrg struct {
	*fixture.Org
	number           string
	system, password string
}

func newSMPPOrg(t *testing.T, s *rig.Server, rate int) *smppOrg {
	t.Helper()
	o := &smppOrg{Org: fixture.NewOrg(s)}
	o.number = fmt.Sprintf("+1202555%04d", 7000+fixture.Addresses.Add(1))
	way := o.AddCarrier("", nil)
	o.Want(201, "POST", "/numbers", map[string]any{"number": o.number, "trunk_id": way.Trunk, "sms_enabled": true}, nil)
	var made struct {
		SystemID string `json:"system_id"`
		Password string
	}
	o.Want(201, "POST", "/sms/applications", map[string]any{"name": "Reminders", "rate_per_second": rate}, &made)
	o.system, o.password = made.SystemID, made.Password
	return o
}

func bindAs(system, password string) *smpp.Bind {
	return &smpp.Bind{SystemID: system, Password: smpp.Secret(password), InterfaceVersion: 0x34}
}

// connect adds a carrier of an organisation, which is served at an address, and waits until it is bound.
func (o *smppOrg) connect(address net.Addr) (carrier string) {
	o.T.Helper()
	var made struct{ ID string }
	o.Want(201, "POST", "/sms/carriers", map[string]any{"provider": "smpp", "name": "Centre", "settings": map[string]any{"host": "127.0.0.1",
		"port": address.(*net.TCPAddr).Port, "system_id": "soniq", "password": "secret"}}, &made)
	return made.ID
}

func smppFlags(t *testing.T) rig.Options {
	return rig.Options{Env: fixture.NoSpeech, Flags: []string{"--smpp", fmt.Sprintf("127.0.0.1:%d", rig.FreePort(t))}}
}

// listen returns a listener of an SMS centre that accepts everything. Submitted messages have the ids 1, 2, 3, …
func (o *smppOrg) listen(t testing.TB) net.Listener {
	t.Helper()
	return serveSMPP(t, func(_ int, p *smppPeer) {
		id := 0
		for {
			pdu, ok := p.receive()
			if !ok {
				return
			}
			if pdu.Command == smpp.SubmitSM {
				id++
			}
			acceptRequest(p, pdu, fmt.Sprint(id))
		}
	})
}

// acceptRequest answers a request of the server.
func acceptRequest(p *smppPeer, pdu smpp.PDU, id string) {
	switch pdu.Command {
	case smpp.SubmitSM:
		p.send(pdu.Command.Response(), &smpp.MessageResponse{MessageID: id}, pdu.Sequence)
	case smpp.BindTransceiver:
		p.send(pdu.Command.Response(), &smpp.BindResponse{SystemID: "centre"}, pdu.Sequence)
	case smpp.EnquireLink, smpp.Unbind:
		p.send(pdu.Command.Response(), nil, pdu.Sequence)
	}
}

// serveSMPP serves connections of the server, which are counted from 0.
func serveSMPP(t testing.TB, serve func(n int, p *smppPeer)) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.SetDeadline(time.Now().Add(25 * time.Second))
			go func() {
				defer c.Close()
				serve(n, &smppPeer{Conn: c, t: t})
			}()
		}
	}()
	return l
}

func (o *smppOrg) waitCarrier(id string) {
	o.T.Helper()
	var c struct{ Status string }
	rig.Until(o.T, "an active carrier", 20*time.Second, func() bool {
		o.Want(200, "GET", "/sms/carriers/"+id, nil, &c)
		return c.Status == "active"
	})
}

// message returns the status of a message.
func (o *smppOrg) message(id string) string {
	o.T.Helper()
	var m struct{ Status string }
	o.Want(200, "GET", "/sms/"+id, nil, &m)
	return m.Status
}
