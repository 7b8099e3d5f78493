package fuzz

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"soniq/e2e/limit"
	"soniq/internal/protocol/sip"
)

// TestWebSocket_AnyFrames sends bytes in place of frames, invalid frames, and SIP in frames, to the WebSocket for
// browsers.
func TestWebSocket_AnyFrames(t *testing.T) {
	t.Parallel()
	f := newStand(t)
	bob := f.AddUser("Bob")
	w := f.way(bob)
	f.phone(bob, func(*sip.Inbound) []byte { return theirs })
	carrier := f.open(w.address(), func(*sip.Inbound) []byte { return theirs })
	seeds := requests(t, w)
	frames := [][]byte{}
	for _, frame := range []string{"\x81\x80\x00\x00\x00\x00", "\x89\x80\x00\x00\x00\x00", "\x88\x82\x00\x00\x00\x00\x03\xe8", "\x01\x83\x01\x02\x03\x04abc\x80\x83\x01\x02\x03\x04abc",
		"\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00", "\xf1\x00", "\x81\x05plain", "\x8a\xfe\x00\x7e\x00\x00\x00\x00"} {
		frames = append(frames, []byte(frame))
	}
	f.begin()
	var open held
	defer open.close()
	for m := f.next(seeds, requestWords); m != nil; m = f.next(seeds, requestWords) {
		conn := f.handshake()
		open.keep(conn)
		for n := 1 + m.IntN(4); n > 0; n-- {
			var b []byte
			switch m.IntN(4) {
			case 0:
				raw := &mutator{m.Rand, frames, nil}
				b = raw.one()
			case 1: // several frames of one message, with something between them
				message := f.own(m, home(m.one()))
				at := m.IntN(len(message) + 1)
				b = append(frame(m, 1, message[:at]), frame(m, pick(m, []byte{0x89, 0x8a, 0x80, 0x81, 0x00}), message[at:])...)
				b = append(b, frame(m, 0x80, nil)...)
			case 2: // a frame with a changed header
				b = frame(m, 0x81, f.own(m, home(m.one())))
				b[m.IntN(min(len(b), 10))] ^= 1 << m.IntN(8)
			default:
				b = frame(m, 0x81, f.own(m, home(m.one())))
			}
			f.sent("web", b)
			_, _ = conn.Write(b)
		}
		if f.rounds.Load()%25 == 0 {
			f.answersBrowsers()
			f.alive()
		}
	}
	open.close()
	open = nil
	f.answersBrowsers()
	f.sound(carrier, w.user)
	f.ends()
}

// frame returns a frame with a given first byte and a random mask.
func frame(m *mutator, first byte, b []byte) []byte {
	head := []byte{first, 0x80 | byte(len(b))}
	if len(b) > 125 {
		head = binary.BigEndian.AppendUint16([]byte{first, 0x80 | 126}, uint16(len(b)))
	}
	mask := binary.BigEndian.AppendUint32(nil, m.Uint32())
	head = append(head, mask...)
	for i, c := range b {
		head = append(head, c^mask[i%4])
	}
	return head
}

// handshake opens a WebSocket from an unused address.
func (f *stand) handshake() net.Conn {
	f.T.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: f.origin()}, Timeout: limit.Hang(0)}
	conn, err := d.Dial("tcp", f.Server.HTTP)
	if err != nil {
		f.T.Fatal(err)
	}
	_, err = io.WriteString(conn, "GET /ws/sip HTTP/1.1\r\nHost: "+f.Server.HTTP+"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: sip\r\n\r\n")
	if err != nil {
		f.T.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReaderSize(conn, 1), nil)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		f.T.Fatalf("the handshake is answered %v %v", answer, err)
	}
	return conn
}

// answersBrowsers fails unless a new WebSocket connection gets a response.
func (f *stand) answersBrowsers() {
	f.T.Helper()
	conn := f.handshake()
	defer end(conn)
	m := f.round(f.origins.Load()<<32, nil, nil)
	_, _ = conn.Write(frame(m, 0x81, f.own(m, request("OPTIONS", "sip:x@127.0.0.1", "", nil))))
	_ = conn.SetReadDeadline(deadline())
	b := make([]byte, 4096)
	n, err := conn.Read(b)
	if err != nil || !strings.Contains(string(b[:n]), "SIP/2.0 ") {
		f.T.Fatalf("a browser is answered %q %v", b[:n], err)
	}
}
