package fuzz

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pion/srtp/v3"

	"soniq/e2e/rig"
	"soniq/internal/protocol/sip"
)

// packets are valid packets for the ports of a call: RTP with audio and digits, with extensions and padding, RTCP,
// STUN, DTLS.
var packets = [][]byte{
	rtp(0, 0, make([]byte, 160)), rtp(8, 0, bytes.Repeat([]byte{0xd5}, 160)), rtp(9, 0, make([]byte, 160)),
	rtp(109, 0, []byte{0xf8, 0xff, 0xfe}),
	rtp(109, 0, append([]byte{0x7b, 0x83, 0x14, 0x14}, make([]byte, 60)...)), rtp(101, 0x80, []byte{5, 10, 0, 160}),
	rtp(101, 0, []byte{5, 0x8a, 3, 32}), rtp(13, 0, []byte{64}),
	unhex("90000001000000010000000 7bede0001 10ff0000 0102030405060708090001020304"), unhex("b0000002000000a000000007000000040000bede0002 10aa 2101bb 00 0000 01020304 00000004"),
	unhex("82000002000000a0000000070000000800000009 ffffffff"), rtp(19, 0, nil),
	unhex("80c80006 00000007 e6000000 00000000 00000000 00000001 000000a0"),
	unhex("81c80006 00000007 e6000000 00000000 000000a0 00000001 000000a0 81c90007 00000007 00000009 00000000 00000001 00000000 00000000 00000000"),
	unhex("81ca0003 00000007 01046162 63640000 81cb0001 00000007"), unhex("81cd0003 00000007 00000009 00010001"), unhex("81ce0002 00000007 00000009"),
	unhex("8fcd0005 00000007 00000009 0001 0004 000001 00 20010000"), unhex("80cf0005 00000007 04000002 e6000000 00000000"),
	unhex(`000100582112a442b7e7a701bc34d686fa87dfae802200105354554e207465737420636c69656e74002400046e0001ff80290008932ff9b151263b36
		000600096576746a3a68367659202020000800149aeaa70cbfd8cb56781ef2b5b2d3f249c1b571a280280004e57a3bcf`),
	unhex(`0101003c2112a442b7e7a701bc34d686fa87dfae8022000b7465737420766563746f7220002000080001a147e112a6430008
		00142b91f599fd9e90c38c7489f92af9ba53f06be7d780280004c07d4c96`),
	unhex("000100002112a442000102030405060708090a0b"), unhex("16fefd0000000000000000001000030100 0000 00"),
	unhex("16feff000000000000000000360100002a000000000000002afefd" + strings.Repeat("5a", 32) + "00000002c02b0100"), unhex("15fefd00000000000000030002 0100"),
	unhex("14fefd0000000000000004000101"), unhex("17fefd000100000000000500100102030405060708090a0b0c0d0e0f10"),
}

func unhex(text string) []byte {
	b, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		panic(err)
	}
	return b
}

// rtp returns an RTP packet; mark is its marker bit.
func rtp(format, mark byte, payload []byte) []byte {
	return append([]byte{0x80, mark | format, 0, 1, 0, 0, 0, 160, 0, 0, 0, 7}, payload...)
}

// ear holds the RTP socket of one side of a call, and the RTCP socket on the port above it.
type ear struct {
	rtp, rtcp *net.UDPConn
	heard     atomic.Int64 // bytes of audio
	to        atomic.Int64 // port that its packets go to
	said      atomic.Int64 // packets
}

func (f *stand) ear(ip net.IP) *ear {
	f.T.Helper()
	port := rig.FreePort(f.T)
	e := &ear{}
	for i, at := range []**net.UDPConn{&e.rtp, &e.rtcp} {
		conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: ip, Port: port + i})
		if err != nil {
			f.T.Fatal(err)
		}
		f.T.Cleanup(func() { _ = conn.Close() })
		*at = conn
		go e.listen(conn)
	}
	return e
}

func (e *ear) listen(conn *net.UDPConn) {
	b := make([]byte, 2000)
	for {
		n, err := conn.Read(b)
		if err != nil {
			return
		}
		if conn == e.rtp && n > 12 {
			e.heard.Add(int64(n - 12))
		}
	}
}

// sdp returns a session description with its address.
func (e *ear) sdp(profile, formats string, more ...string) []byte {
	at := e.rtp.LocalAddr().(*net.UDPAddr)
	return wired(fmt.Sprintf("v=0\no=- 7 1 IN IP4 %s\ns=-\nc=IN IP4 %[1]s\nt=0 0\nm=audio %d %s %s\n%s\n", at.IP, at.Port, profile, formats, strings.Join(more, "\n")))
}

var audioPort = regexp.MustCompile(`m=audio (\d+)`)

// faces reads the destination for packets from an offer or an answer. It returns false if there is none.
func (e *ear) faces(sdp []byte) bool {
	at := audioPort.FindSubmatch(sdp)
	if at == nil {
		return false
	}
	port, _ := strconv.Atoi(string(at[1]))
	e.to.Store(int64(port))
	return true
}

// says sends a packet of G.711, as telephones do before they receive audio. The server latches to the first source on
// the same host. Without these packets it might latch to a server that is fuzzed beside this one and sends to any
// port.
func (e *ear) says() {
	b := rtp(0, 0, make([]byte, 160))
	n := e.said.Add(1)
	binary.BigEndian.PutUint16(b[2:], uint16(n))
	binary.BigEndian.PutUint32(b[4:], uint32(n)*160)
	e.send(b)
}

func (e *ear) send(b []byte) {
	_, _ = e.rtp.WriteToUDP(b, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(e.to.Load())})
}

const sdesKey = "WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz"

// kinds are calls whose packets take different paths through the server.
var kinds = []struct{ name, profile, formats, more string }{
	{"relayed", "RTP/AVP", "0 101", "a=rtpmap:101 telephone-event/8000"},
	{"A-law", "RTP/AVP", "8 101", "a=rtpmap:101 telephone-event/8000"},
	{"G.722", "RTP/AVP", "9", "a=sendrecv"},
	{"Opus", "RTP/AVP", "109 101", "a=rtpmap:109 opus/48000/2\na=rtpmap:101 telephone-event/8000"},
	{"SDES", "RTP/SAVP", "0 101", "a=rtpmap:101 telephone-event/8000\na=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:" + sdesKey},
	{"DTLS", "UDP/TLS/RTP/SAVPF", "109 0", "a=rtpmap:109 opus/48000/2\na=mid:0\na=rtcp-mux\na=setup:actpass\na=ice-ufrag:them\na=ice-pwd:theirPasswordIsLongEnough\n" +
		"a=fingerprint:sha-256 19:E2:1C:3B:4B:9F:81:E6:B8:5C:F4:A5:A8:D8:73:04:BB:05:2F:70:9F:04:A9:0E:05:E9:26:33:E8:70:88:A2\n" +
		"a=candidate:1 1 udp 2122252543 127.0.0.1 9 typ host"},
}

// TestRTP_AnyPackets sends mutated packets to the ports of calls in progress, from the addresses of the telephones
// and from others. After each call's packets a valid packet still reaches the peer.
func TestRTP_AnyPackets(t *testing.T) {
	t.Parallel()
	f := newStand(t)
	bob := f.AddUser("Bob")
	w := f.way(bob)
	far := f.ear(net.IPv4(127, 0, 0, 1))
	farSDP := far.sdp("RTP/AVP", "0 101", "a=rtpmap:101 telephone-event/8000")
	f.phone(bob, func(in *sip.Inbound) []byte { far.faces(in.Offer); return farSDP })
	carrier := f.open(w.address(), func(*sip.Inbound) []byte { return farSDP })
	f.begin()
	near, stranger := f.ear(net.IPv4(127, 0, 0, 1)), f.ear(net.IPv4(127, 66, 6, 6))
	for n := uint64(1); time.Now().Before(f.until) && !t.Failed(); n++ {
		k := kinds[n%uint64(len(kinds))]
		p := &party{stand: f, kind: k.name, near: near, far: far, stranger: stranger}
		p.call(carrier, w.user, near.sdp(k.profile, k.formats, k.more), n)
	}
	f.sound(carrier, w.user)
	f.ends()
}

// party is a call in progress to which mutated packets are sent.
type party struct {
	*stand
	kind                string
	near, far, stranger *ear

	secure *srtp.Context
	count  uint16
}

// call makes a call, sends mutated packets to it for half a second, and ends it.
func (p *party) call(carrier *line, number string, offer []byte, round uint64) {
	p.T.Helper()
	c, err := carrier.dial("+12135550100", number, offer)
	if err != nil {
		p.T.Fatal(err)
	}
	answer, err := c.decided()
	if err != nil || !p.near.faces(answer) {
		p.T.Fatalf("the call (%s) is answered %q %v", p.kind, answer, err)
	}
	if p.kind == "SDES" {
		key, _ := base64.StdEncoding.DecodeString(sdesKey)
		if p.secure, err = srtp.CreateContext(key[:16], key[16:], srtp.ProtectionProfileAes128CmHmacSha1_80); err != nil {
			p.T.Fatal(err)
		}
	}
	p.talks(c)
	for half := time.Now().Add(500 * time.Millisecond); time.Now().Before(half); {
		m := p.next(packets, nil)
		if m == nil {
			break
		}
		p.throw(m)
		if p.rounds.Load()%100 == 0 {
			p.alive() // pauses too, so that the server is not overrun
		}
	}
	p.talks(c)
	if err := c.hangUp(); err != nil {
		p.T.Errorf("%s, call %d: %v", p.kind, round, err)
	}
}

// throw sends one mutated packet.
func (p *party) throw(m *mutator) {
	b := m.one()
	if len(b) > 12 && b[0]>>6 == 2 && m.oneIn(2) { // with the next sequence number
		p.follows(b, 1+m.IntN(2))
	}
	b = b[:min(len(b), 1400)]
	from := []*ear{p.near, p.near, p.stranger}[m.IntN(3)]
	if p.secure != nil && from == p.near && m.oneIn(2) {
		b = p.sealed(b)
	}
	p.sent(p.kind, b)
	conn, port := from.rtp, int(p.near.to.Load())
	if m.oneIn(4) {
		port++
	}
	if m.oneIn(4) {
		conn = from.rtcp
	}
	_, _ = conn.WriteToUDP(b, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
}

// follows sets the sequence number and timestamp after those of the previous packets.
func (p *party) follows(b []byte, step int) {
	p.count += uint16(step)
	binary.BigEndian.PutUint16(b[2:], p.count)
	binary.BigEndian.PutUint32(b[4:], uint32(p.count)*160)
}

// sealed returns a packet encrypted with the key of the call, if it has one. Its sequence number follows the previous
// ones. A jump would break the rollover counter (RFC 3711 section 3.3.1), and no receiver could decrypt later
// packets.
func (p *party) sealed(b []byte) []byte {
	if p.secure == nil || len(b) < 12 {
		return b
	}
	p.follows(b, 1)
	if sealed, err := p.secure.EncryptRTP(nil, b, nil); err == nil {
		return sealed
	}
	return b
}

// talks fails unless audio of the near side reaches the far side now. It does nothing for DTLS, which would need a
// handshake first.
func (p *party) talks(c *call) {
	p.T.Helper()
	if p.kind == "DTLS" {
		return
	}
	format := map[string]byte{"relayed": 0, "SDES": 0, "A-law": 8, "G.722": 9, "Opus": 109}[p.kind]
	payload := make([]byte, 160)
	if p.kind == "Opus" {
		payload = []byte{0xf8, 0xff, 0xfe}
	}
	before := p.far.heard.Load()
	rig.Until(p.T, "audio at the far side ("+p.kind+")", 10*time.Second, func() bool {
		if over(c) {
			p.T.Fatalf("the call (%s) is over", p.kind)
		}
		p.far.says()
		b := rtp(format, 0, payload)
		p.follows(b, 1)
		p.near.send(p.sealed(b))
		return p.far.heard.Load() > before
	})
}
