package media

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
)

// iceParameters holds the ICE parameters that both sides exchanged in SDP (RFC 8839).
type iceParameters struct {
	ufrag, pwd  string // local
	controlling bool
	tieBreaker  uint64

	remoteUfrag, remotePwd string
	candidates             []candidate
	remoteLite             bool // the other side is an ICE-lite agent
}

func newICEParameters() iceParameters {
	var b [6 + 18 + 8]byte // 48 and 144 bits: RFC 8445 §5.3 requires 24 and 128
	_, _ = rand.Read(b[:]) // never fails
	e := base64.RawStdEncoding
	return iceParameters{ufrag: e.EncodeToString(b[:6]), pwd: e.EncodeToString(b[6:24]), tieBreaker: binary.BigEndian.Uint64(b[24:])}
}

// withRemote returns a copy of our parameters completed by those of the other side.
func (t *iceParameters) withRemote(p *protection) *iceParameters {
	full := *t
	full.remoteUfrag, full.remotePwd, full.candidates, full.remoteLite = p.ufrag, p.pwd, p.candidates, p.lite
	return &full
}

// isRestart reports whether a body requests an ICE restart (RFC 8839 §4.4.1.1.1).
func (t *iceParameters) isRestart(p *protection) bool {
	return p.ufrag != t.remoteUfrag || p.pwd != t.remotePwd
}

// hostPriority is the priority of our first candidate (RFC 8445 §5.1.2.1: host, component 1).
const hostPriority = 126<<24 | 65535<<8 | 255

// writeSDP appends our attributes to a body. It has all candidates; trickle ICE is not used. A browser on our own
// network may be unable to reach the address advertised to the Internet. Therefore the machine's own address is a
// second candidate.
func (t *iceParameters) writeSDP(b *strings.Builder, local netip.AddrPort, own netip.Addr) {
	fmt.Fprintf(b, "a=ice-ufrag:%s\r\na=ice-pwd:%s\r\n", t.ufrag, t.pwd)
	writeCandidate(b, 1, hostPriority, local)
	if own.IsValid() && own != local.Addr() && own.Is4() == local.Addr().Is4() {
		writeCandidate(b, 2, hostPriority-1<<8, netip.AddrPortFrom(own, local.Port()))
	}
	b.WriteString("a=end-of-candidates\r\n")
}

func writeCandidate(b *strings.Builder, foundation, priority int, at netip.AddrPort) {
	fmt.Fprintf(b, "a=candidate:%d 1 udp %d %s %d typ host\r\n", foundation, priority, at.Addr(), at.Port())
}
